/*
 * Parses a bash command line up to the cursor, and quotes a name for that place. Bash does not tell a completion how the word is
 * quoted, and replaces only what comes after the last of its break characters: in `slack:C0`, the `C0`.
 *
 *   none ──'──▶ single ──'──▶ none      none ──"──▶ double ──"──▶ none      a backslash takes the next character as it is
 */
type Quote = '' | "'" | '"';

interface Typed {
  /** The words before the one at the cursor, without their quotes; the first is the program. */
  readonly before: readonly string[];
  /** The word at the cursor, without its quotes; may be empty. */
  readonly current: string;
  /** The beginning of `current` that bash keeps. */
  readonly kept: string;
  /** The quote that is open at the cursor. */
  readonly quote: Quote;
}

const SEPARATORS = ';|&(\n';

/** `breaks`: the value of COMP_WORDBREAKS. */
export function parseLine(line: string, breaks: string): Typed {
  let [before, current, kept]: [string[], string | null, string] = [[], null, ''];
  let quote: Quote = '';
  for (let index = 0; index < line.length; index += 1) {
    const char = line[index] as string;
    if (quote !== '') {
      if (char === quote) quote = '';
      else if (quote === '"' && char === '\\' && '"\\$`'.includes(line[index + 1] ?? ' '))
        current += line[++index] ?? '';
      else current += char;
    } else if (char === "'" || char === '"') {
      [quote, current] = [char, current ?? ''];
      kept = current;
    } else if (char === '\\') {
      current = (current ?? '') + (line[++index] ?? '');
    } else if (SEPARATORS.includes(char)) {
      [before, current, kept] = [[], null, ''];
    } else if (/\s/.test(char)) {
      if (current !== null) before.push(current);
      [current, kept] = [null, ''];
    } else {
      current = (current ?? '') + char;
      if (breaks.includes(char)) kept = current;
    }
  }
  return { before, current: current ?? '', kept: quote === '' && current === null ? '' : kept, quote };
}

/** A name as bash takes it at that place: only the part that is replaced, quoted as the person began. */
export function quotedFor(name: string, { kept, quote }: Pick<Typed, 'kept' | 'quote'>): string {
  const rest = name.slice(kept.length);
  if (quote === "'") return rest.replaceAll("'", "'\\''");
  if (quote === '"') return rest.replaceAll(/["\\$`]/g, '\\$&');
  return rest.replaceAll(/[^\p{L}\p{N}\p{M}\p{Extended_Pictographic}%+,./_-]/gu, '\\$&').replace(/^~/, '\\~');
}
