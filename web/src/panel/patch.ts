/** A line of a patch as the page shows it. `number`: in the new file, of a removed one in the old file; null: of a heading. */
export interface PatchLine {
  readonly kind: 'added' | 'removed' | 'same' | 'place';
  readonly text: string;
  readonly number: number | null;
}

const PLACE = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** The lines of a patch as git prints it, without what stands before its first place. */
export function linesOf(patch: string): PatchLine[] {
  const lines: PatchLine[] = [];
  let [old, now] = [0, 0];
  let isInside = false;
  for (const line of patch.replace(/\n$/, '').split('\n')) {
    const place = PLACE.exec(line);
    if (place !== null) {
      [old, now] = [Number(place[1]), Number(place[2])];
      isInside = true;
      lines.push({ kind: 'place', text: line, number: null });
    } else if (isInside) {
      const kind = line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : 'same';
      // "\ No newline at end of file"
      if (line.startsWith('\\')) lines.push({ kind: 'place', text: line.slice(2), number: null });
      else lines.push({ kind, text: line.slice(1), number: kind === 'removed' ? old : now });
      if (line.startsWith('\\')) continue;
      if (kind !== 'added') old += 1;
      if (kind !== 'removed') now += 1;
    }
  }
  return lines;
}
