/** Runs the function, and returns its value and its processor time in milliseconds. The elapsed time would depend on other processes. */
export function worked<T>(work: () => T): { readonly value: T; readonly ms: number } {
  const before = process.threadCpuUsage();
  const value = work();
  const { user, system } = process.threadCpuUsage(before);
  return { value, ms: (user + system) / 1_000 };
}
