type Value = number | null;

/** At most `most` values: the largest of each group; null if none is known. */
export function bucketsOf(values: readonly Value[], most: number): Value[] {
  if (values.length <= most) return [...values];
  return Array.from({ length: most }, (_, index) => {
    const [from, to] = [index, index + 1].map((edge) => Math.floor((edge * values.length) / most));
    const known = values.slice(from, to).filter((value) => value !== null);
    return known.length === 0 ? null : Math.max(...known);
  });
}

/** An SVG path through the known values, with gaps. A single value between gaps is a dot. */
export function lineOf(values: readonly Value[], x: (index: number) => number, y: (value: number) => number): string {
  const pieces: string[] = [];
  values.forEach((value, index) => {
    if (value === null) return;
    const place = `${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
    const begins = index === 0 || values[index - 1] === null;
    pieces.push(begins ? `M${place}h0.01` : `L${place}`);
  });
  return pieces.join('');
}

/** The end of the scale: the next 1, 2 or 5 times a power of ten. */
export function niceTop(largest: number): number {
  if (largest <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(largest));
  const step = [1, 2, 5, 10].find((each) => each * power >= largest) ?? 10;
  return step * power;
}
