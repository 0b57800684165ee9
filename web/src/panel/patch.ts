/** A line of a patch. `number`: in the new file, or in the old file for a removed line; null: a heading. */
interface PatchLine {
  readonly kind: 'added' | 'removed' | 'same' | 'place';
  readonly text: string;
  readonly number: number | null;
}

const PLACE = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** The lines of a patch from git, without its header. */
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
      // "\ No newline at end of file"
      if (line.startsWith('\\')) {
        lines.push({ kind: 'place', text: line.slice(2), number: null });
        continue;
      }
      const kind = line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : 'same';
      lines.push({ kind, text: line.slice(1), number: kind === 'removed' ? old : now });
      if (kind !== 'added') old += 1;
      if (kind !== 'removed') now += 1;
    }
  }
  return lines;
}
