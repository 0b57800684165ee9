import { useEffect } from 'react';
import { usePreference } from '../data/preferences.ts';

export const SCHEMES = { system: 'same as the system', light: 'light', dark: 'dark' } as const;
type Scheme = keyof typeof SCHEMES;

const NEXT: Readonly<Record<Scheme, Scheme>> = { system: 'light', light: 'dark', dark: 'system' };

/** The colour scheme that was chosen in this browser, and a function that switches to the next one. */
export function useScheme(): readonly [Scheme, () => void] {
  const [stored, store] = usePreference('scheme');
  const scheme = stored === 'light' || stored === 'dark' ? stored : 'system';
  return [scheme, () => store(NEXT[scheme] === 'system' ? null : NEXT[scheme])];
}

export function useApplyScheme(): void {
  const [scheme] = useScheme();
  useEffect(() => {
    const { dataset } = document.documentElement;
    if (scheme === 'system') delete dataset.scheme;
    else dataset.scheme = scheme;
  }, [scheme]);
}
