import { FileText, Link2, Music } from 'lucide-react';
import { memo, useState } from 'react';
import type { ContentBlock, Prompt } from 'throughline/client';
import { fileNameIn } from '../data/drafts/prompt.ts';
import { Button } from '../ui/button.tsx';

/** A prompt that is longer is folded. */
const SHOWN_LINES = 14;
const SHOWN_CHARACTERS = 1_800;

/** The prompt of a turn, as it was given. */
export const PromptView = memo(function PromptView({ prompt }: { prompt: Prompt }) {
  const texts = prompt.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const others = prompt.filter(({ type }) => type !== 'text');
  return (
    <div className="rounded-lg bg-sunken px-3 py-2 text-said leading-[1.55]">
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
