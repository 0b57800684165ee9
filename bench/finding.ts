/** One result of a measure: one line of the table. */
export interface Finding {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** Null: there is no target; the value is only reported. */
  readonly target: Target | null;
  /** What is in the number and what is not. */
  readonly note: string;
}

/** `must`: to miss it is a fault. `aim`: a miss is only reported. */
export type Target = { readonly kind: 'must' | 'aim' } & ({ readonly most: number } | { readonly least: number });

export interface MeasureOptions {
  /** Small sizes: to test that a measure works. The values mean nothing. */
  readonly quick: boolean;
}

/** One file of `measures/` exports one of these as its default. */
export type Measure = (options: MeasureOptions) => Promise<Finding[]>;

export function isReached({ value, target }: Finding): boolean {
  if (target === null) return true;
  return 'most' in target ? value <= target.most : value >= target.least;
}
