import type { AgentCommand } from '../data/conversation/announced.ts';

/** A completion of the text at the caret. */
export interface Suggestion {
  readonly id: string;
  readonly label: string;
  readonly about: string;
  /** The text with the completion, and the new position of the caret. */
  readonly text: string;
  readonly caret: number;
  /** More can be suggested after it. Left out: it is complete. */
  readonly isOpen?: boolean;
}

/** The typed part of a command, from the beginning of the text to the caret; null: there is no command. */
export function commandAt(text: string, caret: number): string | null {
  return /^\/(\S*)$/.exec(text.slice(0, caret))?.[1] ?? null;
}

/** The typed part of a file, from an `@` to the caret, and where it begins; null: there is no file. */
export function mentionAt(text: string, caret: number): { readonly typed: string; readonly from: number } | null {
  const found = /(?:^|[\s(["'])@([^\s@"']*)$/.exec(text.slice(0, caret));
  return found === null ? null : { typed: found[1] ?? '', from: caret - (found[1] ?? '').length };
}

/** After a folder, the files in it are suggested. */
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

/** First those that begin with the typed text, then those that contain it. */
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
