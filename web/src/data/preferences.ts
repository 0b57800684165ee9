import { useCallback, useSyncExternalStore } from 'react';

/** Small values that are stored in this browser: drafts, reading positions, what is folded. Without storage they are lost. */
const listeners = new Map<string, Set<() => void>>();

export function readPreference(name: string): string | null {
  try {
    return localStorage.getItem(`throughline.${name}`);
  } catch {
    return null; // storage is switched off
  }
}

export function writePreference(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`throughline.${name}`);
    else localStorage.setItem(`throughline.${name}`, value);
  } catch {
    // switched off, or full: nothing important is lost
  }
  for (const listener of listeners.get(name) ?? []) listener();
}

/** All names with this beginning, without it. */
export function preferenceNames(beginning: string): string[] {
  try {
    const prefix = `throughline.${beginning}`;
    const names = Object.keys(localStorage).filter((name) => name.startsWith(prefix));
    return names.map((name) => name.slice(prefix.length));
  } catch {
    return []; // switched off
  }
}

/** Calls back when it changes, here or in another tab, until the returned function is called. */
export function watchPreference(name: string, onChange: (value: string | null) => void): () => void {
  const listener = () => onChange(readPreference(name));
  const known = listeners.get(name) ?? new Set();
  listeners.set(name, known.add(listener));
  const onStorage = ({ key }: StorageEvent) => key === `throughline.${name}` && listener();
  window.addEventListener('storage', onStorage);
  return () => {
    known.delete(listener);
    window.removeEventListener('storage', onStorage);
  };
}

/** The value, also when another tab changes it. */
export function usePreference(name: string): readonly [string | null, (value: string | null) => void] {
  const subscribe = useCallback((listener: () => void) => watchPreference(name, listener), [name]);
  const value = useSyncExternalStore(subscribe, () => readPreference(name));
  return [value, (next) => writePreference(name, next)];
}
