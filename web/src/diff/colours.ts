import { useEffect, useState } from 'react';
import type { Diff, Line } from './model.ts';
import type { Coloured } from './pieces.ts';

/** The coloured ranges of each line of a diff. */
export type Colours = ReadonlyMap<Line, readonly Coloured[]>;

/** In characters. Longer files are not coloured: it would take longer than a frame. */
const LONGEST = 60_000;

/** Null: there are no colours, or not yet. The language is that of the ending of the file. */
export function useColours(path: string, diff: Diff): Colours | null {
  const [found, setFound] = useState<{ diff: Diff; colours: Colours } | null>(null);
  useEffect(() => {
    const language = /\.(\w+)$/.exec(path)?.[1] ?? '';
    const lines = diff.rows.flatMap((row) =>
      row.kind === 'fold' ? (row.rows ?? []) : row.kind === 'note' ? [] : [row],
    );
    if (language === '' || lines.reduce((sum, { text }) => sum + text.length, 0) > LONGEST) return;
    let isCurrent = true;
    import('../markdown/highlight.ts')
      .then(({ highlight }) => {
        if (!isCurrent) return;
        const colours = new Map<Line, readonly Coloured[]>();
        // What a line means may depend on those before it: so each side is read as a whole.
        for (const without of ['added', 'removed'] as const) {
          const side = lines.filter(({ kind }) => kind !== without);
          const tree = highlight(side.map(({ text }) => text).join('\n'), language) as Tree | null;
          if (tree === null) return;
          for (const [index, ranges] of colouredLines(tree).entries()) colours.set(side[index] as Line, ranges);
        }
        setFound({ diff, colours });
      })
      .catch(() => {}); // readable without colours
    return () => {
      isCurrent = false;
    };
  }, [path, diff]);
  return found?.diff === diff ? found.colours : null;
}

/** What a highlighter returns: texts, and elements with classes. */
export interface Tree {
  readonly children: readonly Node[];
}
type Node =
  | { readonly type: 'text'; readonly value: string }
  | {
      readonly type: 'element';
      readonly properties: { readonly className?: unknown };
      readonly children: readonly Node[];
    };

/** The coloured ranges of each line of a highlighted text. */
export function colouredLines(tree: Tree): Coloured[][] {
  const lines: Coloured[][] = [[]];
  let at = 0;
  const walk = (nodes: readonly Node[], classes: string) => {
    for (const node of nodes) {
      if (node.type === 'element') {
        const own = Array.isArray(node.properties.className) ? node.properties.className.join(' ') : '';
        walk(node.children, own || classes);
        continue;
      }
      for (const [index, part] of node.value.split('\n').entries()) {
        if (index > 0) {
          lines.push([]);
          at = 0;
        }
        if (classes !== '' && part !== '') lines.at(-1)?.push({ from: at, to: at + part.length, classes });
        at += part.length;
      }
    }
  };
  walk(tree.children, '');
  return lines;
}
