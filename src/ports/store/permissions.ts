import type { AnsweredFrom, Permission, PermissionOption } from '../../core/turn/permission.ts';

/** Questions that agents asked during turns. The holder of the lease asks and denies; anybody may answer. */
export interface PermissionStore {
  /**
   * The first answer wins. `conflict`: a later answer, an answer to a denied or withdrawn question, or one that would reach nobody because the
   * conversation is not held any more. `invalid`: an unknown option.
   */
  answer(
    owner: string,
    permission: string,
    optionId: string,
    by: string,
    from?: AnsweredFrom | null,
  ): Promise<Permission>;
  /** Oldest first, a page; `turns`: only of these turns of the conversation; `after` is the id of the last one of the previous page. */
  permissions(
    owner: string,
    filter: { conversation?: string; turn?: string; turns?: TurnSpan; open?: boolean },
    page?: { after?: string; limit?: number },
  ): Promise<Permission[]>;
  findPermission(owner: string, permission: string): Promise<Permission | null>;
  /** The ids of the questions of a conversation that are open: those of its running turn. */
  openPermissions(owner: string, conversation: string): Promise<string[]>;
}

/** The first and the last number of turns. */
export interface TurnSpan {
  readonly from: number;
  readonly to: number;
}

export interface NewPermission {
  readonly id: string;
  readonly attempt: number;
  readonly title: string;
  readonly toolCall: unknown;
  readonly options: readonly PermissionOption[];
}
