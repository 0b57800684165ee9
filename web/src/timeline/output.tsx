import { clsx } from 'clsx';
import { useMemo } from 'react';
import { MoreButton } from '../ui/more-button.tsx';
import { CopyButton } from '../ui/notes.tsx';
import { SafeText } from '../ui/safe-text.tsx';
import { useRest } from './find.ts';
import { type Line, linesOf } from './terminal.ts';

/** A longer output is folded to its end. */
const MOST_LINES = 40;
/** Of a folded output. */
const LAST_LINES = 20;
/** Of a command that failed. */
const LAST_LINES_OF_FAILED = 10;
/** Of a longer line only the beginning is shown at first. */
const MOST_CHARACTERS = 20_000;
const FIRST_CHARACTERS = 2_000;

interface OutputProps {
  /** As it came, with the sequences of terminals. */
  readonly text: string;
  /** What printed it. */
  readonly command?: string | null;
  /** Only its last lines at first. */
  readonly isEnd?: boolean;
}

/** What a program printed, as a terminal would show it. A long output shows its end, and the rest when somebody asks for it. */
export function Output({ text, command = null, isEnd = false }: OutputProps) {
  const lines = useMemo(() => linesOf(text.trimEnd()), [text]);
  const [isWhole, showWhole] = useRest(() => text);
  const most = isEnd ? LAST_LINES_OF_FAILED : MOST_LINES;
  const earlier = isWhole || lines.length <= most ? 0 : lines.length - (isEnd ? most : LAST_LINES);
  const shown = isWhole ? lines : lines.slice(earlier).map(cutLine);
  const left = lines.slice(earlier).reduce((sum, line, at) => sum + length(line) - length(shown[at] ?? []), 0);
  return (
    <div className="group/output relative overflow-hidden rounded-md border border-line bg-sunken">
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it
        tabIndex={0}
        className="max-h-96 overflow-auto px-3 py-2 font-mono text-facts leading-5 whitespace-pre-wrap wrap-anywhere"
      >
        {command !== null && (
          <span className="text-ink">
            <span className="text-faint select-none">$ </span>
            <SafeText text={command} as="code" />
            {'\n'}
          </span>
        )}
        {earlier > 0 && (
          <MoreButton
            onClick={showWhole}
          >{`${earlier.toLocaleString('en')} earlier ${earlier === 1 ? 'line' : 'lines'}`}</MoreButton>
        )}
        <span className="text-muted">{shown.map(row)}</span>
        {left > 0 && <MoreButton onClick={showWhole}>{`${left.toLocaleString('en')} more characters`}</MoreButton>}
      </pre>
      <span className="absolute top-0.5 right-0.5 rounded-sm bg-sunken opacity-0 group-hover/output:opacity-100 focus-within:opacity-100 pointer-coarse:opacity-100">
        <CopyButton text={lines.map(plain).join('\n')} label="Copy the output" />
      </span>
    </div>
  );
}

function row(line: Line, index: number) {
  return (
    <span key={String(index)}>
      {index > 0 && '\n'}
      {line.map(({ text, look }, at) => (
        <span key={String(at)} className={clsx(look)}>
          {text}
        </span>
      ))}
    </span>
  );
}

const plain = (line: Line) => line.map(({ text }) => text).join('');
const length = (line: Line) => line.reduce((sum, { text }) => sum + text.length, 0);

/** The beginning of a very long line. */
function cutLine(line: Line): Line {
  if (length(line) <= MOST_CHARACTERS) return line;
  let left = FIRST_CHARACTERS;
  return line.flatMap(({ text, look }) => {
    const part = text.slice(0, left);
    left -= part.length;
    return part === '' ? [] : [{ text: part, look }];
  });
}
