import type { AgentCommand } from '../data/conversation/announced.ts';

/** Something that can stand where somebody is writing. */
export interface Suggestion {
  readonly id: string;
  readonly label: string;
  readonly about: string;
  /** What the text becomes, and where the caret is then. */
  readonly text: string;
  readonly caret: number;
  /** More can be suggested after it. Left out: it is complete. */
  readonly isOpen?: boolean;
}

/** What is typed of a command, at the beginning of the text and up to the caret; null: it is none. */
export function commandAt(text: string, caret: number): string | null {
  return /^\/(\S*)$/.exec(text.slice(0, caret))?.[1] ?? null;
}

/** What is typed of a file, from an `@` up to the caret, and where that begins; null: it is none. */
export function mentionAt(text: string, caret: number): { readonly typed: string; readonly from: number } | null {
  const found = /(?:^|[\s(["'])@([^\s@"']*)$/.exec(text.slice(0, caret));
  return found === null ? null : { typed: found[1] ?? '', from: caret - (found[1] ?? '').length };
}

/** A folder stays open, so that one can go on to what is in it. */
export function fileSuggestions(paths: readonly string[], text: string, caret: number): Suggestion[] {
  const mention = mentionAt(text, caret);
  if (mention === null) return [];
  const others = paths.filter((path) => path !== mention.typed);
  return others.map((path) => {
    const isFolder = path.endsWith('/');
    const at = path.lastIndexOf('/', path.length - 2) + 1;
    const rest = text.slice(caret).replace(/^[^\s"']+/, '');
    const word = isFolder || /^\s/.test(rest) ? path : `${path} `;
    return {
      id: path,
      label: path.slice(at),
      about: path.slice(0, at),
      text: text.slice(0, mention.from) + word + rest,
      caret: mention.from + word.length,
      isOpen: isFolder,
    };
  });
}

const MOST = 50;

/** Those that begin so first, then those that contain it. */
export function matching<T>(all: readonly T[], typed: string, nameOf: (one: T) => string): T[] {
  const wanted = typed.toLowerCase();
  const rank = (one: T) => {
    const at = nameOf(one).toLowerCase().indexOf(wanted);
    return at === -1 ? 2 : Math.min(at, 1);
  };
  return all
    .filter((one) => rank(one) < 2)
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, MOST);
}

export function commandSuggestions(commands: readonly AgentCommand[], text: string, caret: number): Suggestion[] {
  const typed = commandAt(text, caret);
  if (typed === null) return [];
  return matching(commands, typed, ({ name }) => name).map(({ name, description, hint }) => {
    const word = `/${name} `;
    const label = hint ? `/${name} ${hint}` : `/${name}`;
    return { id: name, label, about: description, text: word + text.slice(caret).trimStart(), caret: word.length };
  });
}
