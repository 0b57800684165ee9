/** A plausible count, the same for the same text, so that sums can be compared. */
export function tokensIn(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / 4));
}
