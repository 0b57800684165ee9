import { Fragment } from 'react';
import { type Mark, type MarkedAs, marksIn } from '../../../src/core/input/marks.ts';

interface SafeTextProps {
  readonly text: string;
  readonly as: MarkedAs;
}

/**
 * A text of an agent or a file, on which somebody relies: what reorders it, cannot be seen or looks like something else is a box with its
 * name. The text is isolated, so that it cannot change how the words around it are shown.
 */
export function SafeText({ text, as }: SafeTextProps) {
  return (
    <bdi dir={as === 'code' ? 'ltr' : 'auto'}>
      {marksIn(text, as).map((piece, index) => {
        const key = String(index);
        return typeof piece === 'string' ? <Fragment key={key}>{piece}</Fragment> : <MarkBox key={key} mark={piece} />;
      })}
    </bdi>
  );
}

/** A marked character: its name in a box. */
export function MarkBox({ mark: { name } }: { mark: Mark }) {
  return (
    <mark className="mx-px inline-block rounded-[3px] border-[1.5px] border-look bg-look-soft px-1 font-mono text-facts/4 font-semibold text-look">
      <bdi>{name}</bdi>
    </mark>
  );
}
