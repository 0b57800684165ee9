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
    <bdi>
      {marksIn(text, as).map((piece, index) => {
        const key = String(index);
        return typeof piece === 'string' ? <Fragment key={key}>{piece}</Fragment> : <Box key={key} mark={piece} />;
      })}
    </bdi>
  );
}

function Box({ mark: { name } }: { mark: Mark }) {
  return (
    <mark className="mx-0.5 rounded-sm border border-look bg-look-soft px-1 text-[0.85em] font-semibold text-look">
      <bdi>{name}</bdi>
    </mark>
  );
}

/** Why a question is not what it seems; null: nothing in it is marked. */
export function warningOf(texts: readonly string[]): string | null {
  const marks = texts.flatMap((text) => marksIn(text, 'code')).filter((piece) => typeof piece !== 'string');
  if (marks.length === 0) return null;
  const kinds = new Set(marks.map(({ kind }) => kind));
  const words = (Object.keys(REASONS) as Mark['kind'][]).filter((kind) => kinds.has(kind)).map((kind) => REASONS[kind]);
  const { size } = new Set(marks.map(({ char }) => char));
  const count = size === 1 ? 'A character here is' : `${size} characters here are`;
  return `${count} not what a person would see: ${words.join('; ')}.`;
}

const REASONS: Readonly<Record<Mark['kind'], string>> = {
  reorders: 'text can be shown in another order than it has',
  invisible: 'something cannot be seen',
  control: 'a control character can hide or replace what was written before it',
  'looks-like': 'a letter or sign looks like another one',
};
