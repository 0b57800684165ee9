import type { ApiKey } from '../../core/key.ts';

/** Keys to the HTTP interface. */
export interface KeyStore {
  /** `conflict` when the id is taken. */
  createKey(owner: string, key: NewKey): Promise<ApiKey>;
  /** Of any owner. Also one that has expired or was revoked; null: there is none. */
  findKey(id: string): Promise<ApiKey | null>;
  /** All of the owner's, newest first. */
  keys(owner: string): Promise<ApiKey[]>;
  /** From now on the key is not valid. One that was revoked before stays as it is. Throws `not_found`. */
  revokeKey(owner: string, id: string): Promise<ApiKey>;
}

export type NewKey = Pick<ApiKey, 'id' | 'name' | 'scopes' | 'owners' | 'hash' | 'expiresAt'>;
