import type { ApiKey } from '../../core/key.ts';

/** Keys to the HTTP interface. */
export interface KeyStore {
  /** `conflict` when the id is taken. */
  createKey(owner: string, key: NewKey): Promise<ApiKey>;
  /** Whoever's it is: the key says on whose behalf it acts. Also one that has expired or was revoked; null: there is none. */
  findKey(id: string): Promise<ApiKey | null>;
  /** All of the owner's, newest first. */
  keys(owner: string): Promise<ApiKey[]>;
  /** From now on it opens nothing. One that was revoked before stays as it is. Throws `not_found`. */
  revokeKey(owner: string, id: string): Promise<ApiKey>;
}

export type NewKey = Pick<ApiKey, 'id' | 'name' | 'scopes' | 'hash' | 'expiresAt'>;
