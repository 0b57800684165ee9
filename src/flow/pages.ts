/**
 * Reads a list page by page; each page begins after the last value of the page before. Only an empty page is the end, because a
 * page of large values may be short. `read` is told how many are still wanted; at most `most` are yielded.
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

/** All of them. (`Array.fromAsync` is missing in Node 20, where the client runs.) */
export async function gathered<T>(values: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const value of values) all.push(value);
  return all;
}
