/** What a measure has found: one line of the table. */
export interface Finding {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** Null: measured beside the others, to be known. */
  readonly target: Target | null;
  /** What is in the number and what is not. */
  readonly note: string;
}

/** `must`: missing it is a fault. `aim`: missing it is said, with the reason. */
export type Target = { readonly kind: 'must' | 'aim' } & ({ readonly most: number } | { readonly least: number });

export interface MeasureOptions {
  /** Small sizes: to see that a measure works, not how fast anything is. */
  readonly quick: boolean;
}

/** One file of `measures/` exports one of these as its default. */
export type Measure = (options: MeasureOptions) => Promise<Finding[]>;

export function isReached({ value, target }: Finding): boolean {
  if (target === null) return true;
  return 'most' in target ? value <= target.most : value >= target.least;
}
