import { useEffect, useMemo, useRef } from 'react';
import { create } from 'zustand';

/** Something that can be done from the palette, by keys, or by a button. Each view offers its actions while it is shown. */
export interface Action {
  readonly id: string;
  readonly title: string;
  /** The heading above it in the palette. */
  readonly group: string;
  /** `Mod+K`, or `g i` (one after the other). Keys without Mod do nothing while somebody types. */
  readonly keys?: string;
  /** The equivalent command. */
  readonly cli?: string;
  run(): void;
}

const useOffered = create<readonly (readonly Action[])[]>(() => []);

/** Every action that is offered now. A later one replaces an earlier one with the same id. */
export function useAllActions(): readonly Action[] {
  const offers = useOffered();
  return useMemo(() => merged(offers), [offers]);
}

export function allActions(): readonly Action[] {
  return merged(useOffered.getState());
}

function merged(offers: readonly (readonly Action[])[]): readonly Action[] {
  return [...new Map(offers.flat().map((action) => [action.id, action])).values()];
}

/** Offers actions for as long as the component is shown. */
export function useActions(actions: readonly Action[]): void {
  const latest = useRef(actions);
  latest.current = actions;
  const shape = actions.map(({ id, title, keys, cli }) => [id, title, keys, cli].join('\u0000')).join('\u0001');
  // biome-ignore lint/correctness/useExhaustiveDependencies: offered again only when a visible property changes
  useEffect(() => {
    const offer = latest.current.map((action, index) => ({ ...action, run: () => latest.current[index]?.run() }));
    useOffered.setState((before) => [...before, offer], true);
    return () => useOffered.setState((before) => before.filter((each) => each !== offer), true);
  }, [shape]);
}
