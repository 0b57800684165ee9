import type { Permission, PermissionOption } from '../../core/permission.ts';

/** What agents have asked mid-turn. Asking and withdrawing are writes of the holder; answering is anybody's. */
export interface PermissionStore {
  /**
   * The first answer wins; a later one, one to a withdrawn question, or one that nobody would hear, because the conversation is not
   * held any more, is a `conflict`; an unknown option is `invalid`.
   */
  answer(owner: string, permission: string, optionId: string, by: string): Promise<Permission>;
  /** Oldest first, a page; `after` is the id of the last one of the page before. */
  permissions(
    owner: string,
    filter: { conversation?: string; turn?: string; open?: boolean },
    page?: { after?: string; limit?: number },
  ): Promise<Permission[]>;
  findPermission(owner: string, permission: string): Promise<Permission | null>;
}

export interface NewPermission {
  readonly id: string;
  readonly attempt: number;
  readonly title: string;
  readonly toolCall: unknown;
  readonly options: readonly PermissionOption[];
}
