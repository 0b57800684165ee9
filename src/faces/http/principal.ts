import type { Scope } from '../../core/key.ts';

/** Who asks, as far as it was proved. */
export interface Principal {
  /** On whose behalf. */
  readonly owner: string;
  /** By which hand, for the record: `token`, `page`, or `key ID`. */
  readonly by: string;
  readonly scopes: ReadonlySet<Scope>;
  /** What it was proved by: those with the same proof are valid, or not, together. Never to be shown. */
  readonly proof: string;
  /** Looked at again while a stream lasts: a key may be revoked meanwhile. */
  stillValid(): Promise<boolean>;
}
