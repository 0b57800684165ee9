/**
 * All of a list that comes in pages: each begins after the last value of the one before, and only an empty one is the end, for
 * a page of large values is a short one. `read` is told how many are still wanted; no more than `most` are given.
 */
export async function* inPages<T>(
  read: (last: T | undefined, wanted: number) => Promise<readonly T[]>,
  most = Number.POSITIVE_INFINITY,
): AsyncGenerator<T> {
  let [last, wanted]: [T | undefined, number] = [undefined, most];
  while (wanted > 0) {
    const page = await read(last, wanted);
    if (page.length === 0) return;
    yield* page;
    last = page.at(-1);
    wanted -= page.length;
  }
}
