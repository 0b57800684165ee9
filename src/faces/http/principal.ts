import type { Scope } from '../../core/key.ts';

/** Who asks, as far as it was proved. */
export interface Principal {
  /** On whose behalf. */
  readonly owner: string;
  /** By which hand, for the record: `token`, `page`, or `key ID`. */
  readonly by: string;
  readonly scopes: ReadonlySet<Scope>;
  /** Looked at again while a stream lasts: a key may be revoked meanwhile. */
  stillValid(): Promise<boolean>;
}
