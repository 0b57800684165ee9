import { useEffect } from 'react';
import { usePreference } from '../data/preferences.ts';

export const SCHEMES = { system: 'As the system', light: 'Light', dark: 'Dark' } as const;
type Scheme = keyof typeof SCHEMES;

/** The colour scheme that was chosen in this browser, and a function that chooses one. */
export function useScheme(): readonly [Scheme, (scheme: Scheme) => void] {
  const [stored, store] = usePreference('scheme');
  const scheme = stored === 'light' || stored === 'dark' ? stored : 'system';
  return [scheme, (next) => store(next === 'system' ? null : next)];
}

export function useApplyScheme(): void {
  const [scheme] = useScheme();
  useEffect(() => {
    const { dataset } = document.documentElement;
    if (scheme === 'system') delete dataset.scheme;
    else dataset.scheme = scheme;
  }, [scheme]);
}
