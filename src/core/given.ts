/** Removes undefined fields, so that "not set" and "set to undefined" are the same. */
export function given<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as never;
}
