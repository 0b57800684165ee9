/** What it gives, and how many milliseconds of the processor it took. The time by the clock would say how busy the machine is. */
export function worked<T>(work: () => T): { readonly value: T; readonly ms: number } {
  const before = process.threadCpuUsage();
  const value = work();
  const { user, system } = process.threadCpuUsage(before);
  return { value, ms: (user + system) / 1_000 };
}
