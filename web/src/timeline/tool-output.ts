import { DIFF_BEGINS } from '../../../src/core/turn/record.ts';

/** What a tool printed (as it came, with the sequences of terminals) and changed, in order. */
export type OutputPiece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'diff'; readonly path: string; readonly lines: readonly DiffLine[] };

interface DiffLine {
  readonly sign: '-' | '+';
  readonly text: string;
  /** Its number in the new file; of a removed line, in the old file. */
  readonly number: number;
}

const HEADING = new RegExp(`^\\${DIFF_BEGINS}(.*), line (\\d+)\\]$`);
export function piecesOf(output: string): OutputPiece[] {
  const pieces: OutputPiece[] = [];
  let text: string[] = [];
  const flush = () => {
    if (text.some((line) => line !== '')) pieces.push({ kind: 'text', text: text.join('\n') });
    text = [];
  };
  const lines = output.split('\n');
  for (let at = 0; at < lines.length; at += 1) {
    const [, path, first] = HEADING.exec(lines[at] ?? '') ?? [];
    if (path === undefined) {
      text.push(lines[at] ?? '');
      continue;
    }
    flush();
    const end = endOfDiff(lines, at + 1);
    pieces.push({ kind: 'diff', path, lines: diffLines(lines.slice(at + 1, end), Number(first)) });
    at = end - 1;
  }
  flush();
  return pieces;
}

/** A diff ends before the first line without a sign. */
function endOfDiff(lines: readonly string[], from: number): number {
  const end = lines.findIndex((line, index) => index >= from && !/^[-+]/.test(line));
  return end === -1 ? lines.length : end;
}

function diffLines(lines: readonly string[], first: number): DiffLine[] {
  let [old, now] = [first, first];
  return lines.map((line) => {
    const sign = line[0] === '-' ? '-' : '+';
    const number = sign === '-' ? old++ : now++;
    return { sign, text: line.slice(1), number };
  });
}

/** How many lines were added and removed; null: nothing was changed. */
export function changeOf(pieces: readonly OutputPiece[]): { readonly added: number; readonly removed: number } | null {
  const lines = pieces.flatMap((piece) => (piece.kind === 'diff' ? piece.lines : []));
  if (lines.length === 0) return null;
  return {
    added: lines.filter(({ sign }) => sign === '+').length,
    removed: lines.filter(({ sign }) => sign === '-').length,
  };
}
