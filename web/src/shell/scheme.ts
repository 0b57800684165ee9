import { useEffect } from 'react';
import { usePreference } from '../data/preferences.ts';

export const SCHEMES = { system: 'as the system', light: 'light', dark: 'dark' } as const;
export type Scheme = keyof typeof SCHEMES;

const NEXT: Readonly<Record<Scheme, Scheme>> = { system: 'light', light: 'dark', dark: 'system' };

/** The colours that were chosen in this browser, and the next choice. */
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
