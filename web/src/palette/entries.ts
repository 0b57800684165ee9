import type { Conversation, SearchHit } from 'throughline/client';
import { projectOf } from '../rail/groups.ts';
import { fold, pathOf } from '../search/search.ts';
import type { Action } from '../shell/actions.ts';
import { shellWord } from '../ui/shell-word.ts';
import { branchOf, lookOf, nameOf } from '../ui/state.tsx';

/** A line of the palette. */
export interface Entry {
  readonly id: string;
  readonly title: string;
  /** Distinguishes it from entries with the same title. */
  readonly about: string | null;
  readonly keys: string | null;
  readonly cli: string | null;
  run(): void;
}

export interface EntryGroup {
  readonly value: string;
  readonly items: readonly Entry[];
}

interface PaletteFacts {
  readonly words: string;
  readonly actions: readonly Action[];
  readonly rows: readonly Conversation[];
  readonly hits: readonly SearchHit[];
  go(path: string): void;
}

const MOST_ROWS = 8;
const MOST_HITS = 5;

/** The entries for the typed words, best first: actions, conversations by title, and turns by their text. */
export function entriesOf({ words, actions, rows, hits, go }: PaletteFacts): EntryGroup[] {
  const groups = new Map<string, Entry[]>();
  const put = (group: string, entry: Entry) => groups.set(group, [...(groups.get(group) ?? []), entry]);
  for (const action of ranked(words, actions, ({ title, group }) => `${title} ${group}`)) {
    put(action.group, { ...action, about: null, keys: action.keys ?? null, cli: action.cli ?? null });
  }
  const found = words === '' ? [] : hits;
  const listed = ranked(words, rows, (each) => `${nameOf(each)} ${each.key ?? ''}`).slice(0, MOST_ROWS);
  for (const row of listed) {
    const branch = branchOf(row, (id) => rows.find((each) => each.id === id)?.title);
    const about = [branch, lookOf(row)?.word, projectOf(row)?.name].filter(Boolean).join(' · ');
    put('Open', {
      ...{ id: row.id, title: nameOf(row), about, keys: null, cli: `throughline show ${shellWord(row.key ?? row.id)}` },
      run: () => go(`/c/${row.id}`),
    });
  }
  // Conversations that the list has not loaded yet.
  const others = found.filter(({ n, conversationId }) => n === null && !listed.some(({ id }) => id === conversationId));
  for (const hit of others.slice(0, MOST_ROWS - listed.length)) {
    put('Open', {
      ...{ id: hit.conversationId, title: nameOf(hit), about: null, keys: null },
      ...{ cli: `throughline show ${shellWord(hit.key ?? hit.conversationId)}`, run: () => go(pathOf(hit, words)) },
    });
  }
  for (const hit of found.filter(({ n }) => n !== null).slice(0, MOST_HITS)) {
    put('Found in turns', {
      ...{ id: `${hit.conversationId} ${hit.n}`, title: hit.snippet, about: `${nameOf(hit)}, turn ${hit.n}` },
      ...{ keys: null, cli: `throughline search ${shellWord(words)}`, run: () => go(pathOf(hit, words)) },
    });
  }
  return [...groups].map(([value, items]) => ({ value, items }));
}

/** Those that contain all the words: first where the text begins with them, then where words begin with them, then the others. */
export function ranked<T>(words: string, all: readonly T[], textOf: (each: T) => string): T[] {
  const wanted = fold(words).split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return [...all];
  const scored = all.flatMap((each) => {
    const text = fold(textOf(each));
    if (!wanted.every((word) => text.includes(word))) return [];
    const begins = wanted.filter((word) => ` ${text}`.includes(` ${word}`)).length;
    return [{ each, score: begins + (text.startsWith(wanted.join(' ')) ? 1 : 0) }];
  });
  return scored.sort((a, b) => b.score - a.score).map(({ each }) => each);
}
