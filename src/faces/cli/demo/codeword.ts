import { randomInt } from 'node:crypto';

const FIRST = ['amber', 'cobalt', 'crimson', 'ivory', 'jade', 'ochre', 'scarlet', 'silver', 'teal', 'violet'];
const SECOND = ['badger', 'falcon', 'heron', 'lynx', 'marten', 'osprey', 'otter', 'raven', 'stoat', 'wren'];

/** Drawn anew every time: nobody can have known it. */
export function drawCodeword(): string {
  const pick = (words: readonly string[]) => words[randomInt(words.length)];
  return `${pick(FIRST)}-${pick(SECOND)}-${randomInt(1_000, 10_000)}`;
}
