import { codeOf, type Mark, marksIn } from './marks.ts';

/**
 * What the marks in the texts of a question hide, in a sentence for whoever answers it: "Two characters here are not what they look like:
 * U+202E shows the text after it in another order; “о” is Cyrillic." Null: nothing is marked.
 */
export function warningOf(texts: readonly string[]): string | null {
  const marks = texts.flatMap((text) => marksIn(text, 'code')).filter((piece) => typeof piece !== 'string');
  const different = [...new Map(marks.map((mark) => [mark.char, mark])).values()];
  if (different.length === 0) return null;
  const tags = marks.filter(({ char }) => isTag(char));
  const reasons = [
    ...(tags.length === 0 ? [] : [`a hidden text says “${tags.map(({ char }) => spelled(char)).join('')}”`]),
    ...different.filter(({ char }) => !isTag(char)).map(reasonOf),
  ];
  const shown = reasons.slice(0, MOST_REASONS).join('; ');
  const rest = reasons.length > MOST_REASONS ? `; and ${reasons.length - MOST_REASONS} more` : '';
  return `${counted(different.length)} not what ${different.length === 1 ? 'it looks' : 'they look'} like: ${shown}${rest}.`;
}

const MOST_REASONS = 4;
const NUMBERS = ['', 'A character', 'Two characters', 'Three characters', 'Four characters', 'Five characters'];

function counted(count: number): string {
  return `${NUMBERS[count] ?? `${count} characters`} here ${count === 1 ? 'is' : 'are'}`;
}

function reasonOf({ char, kind, name, like }: Mark): string {
  const code = codeOf(char);
  switch (kind) {
    case 'reorders':
      return `${code} changes the order in which the text around it is shown`;
    case 'invisible':
      return name.endsWith('ends a line') ? `${code} ends a line` : `${code} cannot be seen`;
    case 'control':
      return `${code} can hide what stands before it`;
    case 'looks-like':
      if (like === ' ') return `${code} is not an ordinary space`;
      return name.startsWith('U+') ? `${code} is drawn over the text` : lookAlike(name, like);
  }
}

function lookAlike(name: string, like: string | null): string {
  const [char = '', what = ''] = name.split(' · ');
  const is = what.startsWith('U+') ? `the character ${what}` : what;
  return like === null || like === '' ? `“${char}” is ${is}` : `“${char}” is ${is}, not “${like}”`;
}

/** Characters of a second alphabet that nobody sees. */
const isTag = (char: string) => /^[\u{e0020}-\u{e007e}]$/u.test(char);
const spelled = (char: string) => String.fromCodePoint((char.codePointAt(0) ?? 0) - 0xe0000);
