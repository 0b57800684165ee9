export function isSince(version: string, [major, minor, patch]: readonly [number, number, number]): boolean {
  const [a = 0, b = 0, c = 0] = version.split('.').map(Number);
  return a !== major ? a > major : b !== minor ? b > minor : c >= patch;
}
