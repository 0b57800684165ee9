import { clsx } from 'clsx';
import { diffLines } from 'diff';
import { quotedPath } from '../../../src/core/input/visible.ts';
import { SafeText } from '../ui/safe-text.tsx';
import type { AskedDiff } from './asked.ts';

/** All lines of the files, also the unchanged ones: whoever approves a change must be able to read all of it. */
export function AskedDiffs({ diffs }: { diffs: readonly AskedDiff[] }) {
  return diffs.map((diff) => <OneDiff key={diff.path} diff={diff} />);
}

function OneDiff({ diff: { path: raw, before, after } }: { diff: AskedDiff }) {
  const path = quotedPath(raw);
  const changes = diffLines(before ?? '', after);
  return (
    <figure className="overflow-hidden rounded-sm border border-line">
      <figcaption className="border-b border-line bg-sunken px-2 py-1 font-mono text-facts break-all">
        <SafeText text={path} as="code" />
        {before === null && <span className="ml-2 font-sans text-muted">new file</span>}
      </figcaption>
      <section
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by the keyboard
        tabIndex={0}
        aria-label={`Changes in ${path}`}
        className="max-h-72 overflow-auto font-mono text-facts leading-5 whitespace-pre"
      >
        {changes.map(({ value, added, removed }, index) => (
          <span
            // biome-ignore lint/suspicious/noArrayIndexKey: a diff is computed once and never reordered
            key={index}
            className={clsx(
              'block w-max min-w-full px-2',
              added && 'bg-add-soft',
              removed && 'bg-del-soft',
              !added && !removed && 'text-muted',
            )}
          >
            <SafeText text={signed(value, added ? '+' : removed ? '-' : ' ')} as="code" />
          </span>
        ))}
      </section>
    </figure>
  );
}

/** Puts the sign before every line: a colour must not be the only difference. */
function signed(value: string, sign: string): string {
  const lines = value.replace(/\n$/, '').split('\n');
  return lines.map((line) => `${sign} ${line}`).join('\n');
}
