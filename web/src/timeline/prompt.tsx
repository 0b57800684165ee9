import { clsx } from 'clsx';
import { FileText, Link2, Music } from 'lucide-react';
import { memo, useState } from 'react';
import type { ContentBlock, Turn } from 'throughline/client';
import { Link } from 'wouter';
import { fileNameIn } from '../data/drafts/prompt.ts';
import { Button } from '../ui/button.tsx';
import { At } from '../ui/time.tsx';
import { TurnMenuButton } from './turn-menu.tsx';

/** A prompt that is longer is folded. */
const SHOWN_LINES = 14;
const SHOWN_CHARACTERS = 1_800;

interface PromptProps extends Pick<Turn, 'n' | 'createdAt' | 'prompt'> {
  /** The address names it, and nobody has done anything since. */
  readonly isTarget: boolean;
}

/** The prompt of a turn, as it was given, with its time and number. */
export const PromptView = memo(function PromptView({ n, createdAt, prompt, isTarget }: PromptProps) {
  const texts = prompt.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const others = prompt.filter(({ type }) => type !== 'text');
  return (
    <div
      className={clsx(
        'group relative rounded-lg border bg-prompt px-3.5 pt-2 pb-2.5 text-said',
        isTarget ? 'border-ink outline-1 outline-ink' : 'border-line',
      )}
      data-target={isTarget || undefined}
    >
      <Heading n={n} createdAt={createdAt} />
      {texts.map((text, index) => (
        <Words key={String(index)} text={text} />
      ))}
      {prompt.length === 0 && <p className="text-muted">The prompt is not known.</p>}
      {others.length > 0 && (
        <div className="mt-2 flex flex-wrap gap-2">
          {others.map((block, index) => (
            <Attached key={String(index)} block={block} />
          ))}
        </div>
      )}
    </div>
  );
});

function Heading({ n, createdAt }: Pick<Turn, 'n' | 'createdAt'>) {
  return (
    <header className="mb-0.5 flex h-4 items-center gap-2 text-facts text-faint tabular-nums">
      <At at={createdAt} />
      <span className="flex-1" />
      <TurnMenuButton n={n} />
      <Link href={`/turn/${n}`} className="touch pointer-coarse:-mx-4 hover:text-ink" aria-label={`Link to turn ${n}`}>
        {n.toLocaleString('en')}
      </Link>
    </header>
  );
}

function Words({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > SHOWN_CHARACTERS || text.split('\n', SHOWN_LINES + 1).length > SHOWN_LINES;
  const shown = isLong && !isWhole ? text.split('\n', SHOWN_LINES).join('\n').slice(0, SHOWN_CHARACTERS) : text;
  return (
    <>
      <p dir="auto" className="whitespace-pre-wrap wrap-anywhere">
        {shown}
        {shown !== text && '…'}
      </p>
      {isLong && (
        <Button small look="quiet" className="-ml-2" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'Show less' : `Show all ${text.length.toLocaleString('en')} characters`}
        </Button>
      )}
    </>
  );
}

/** Formats that browsers show. In an `img`, no script in them runs. */
const IMAGE = /^image\/(png|jpeg|gif|webp|avif|svg\+xml)$/;

function Attached({ block }: { block: ContentBlock }) {
  if (block.type === 'image' && IMAGE.test(block.mimeType)) {
    return (
      <img
        src={`data:${block.mimeType};base64,${block.data}`}
        alt={fileNameIn(block.uri) ?? 'Image in the prompt'}
        className="h-44 max-w-full rounded-sm border border-line bg-raised object-contain"
      />
    );
  }
  const [Icon, name] = labelOf(block);
  return (
    <span className="inline-flex max-w-full items-center gap-1.5 rounded-sm border border-line bg-raised px-2 py-1 text-facts">
      <Icon size={13} className="shrink-0 text-muted" aria-hidden />
      <span className="truncate">{name}</span>
    </span>
  );
}

function labelOf(block: ContentBlock): readonly [typeof FileText, string] {
  switch (block.type) {
    case 'audio':
      return [Music, `Audio, ${block.mimeType}`];
    case 'resource_link':
      return [Link2, block.name || block.uri];
    case 'resource':
      return [FileText, fileNameIn(block.resource.uri) ?? block.resource.uri];
    case 'image':
      return [FileText, `Image, ${block.mimeType}`];
    default:
      return [FileText, 'Text'];
  }
}
