import { checkText } from './arguments.ts';

/** Who acts: the owner on whose behalf, and the name that is recorded. */
export interface Actor {
  readonly owner: string;
  readonly by: string;
}

/** Throws `invalid`, also for an unpaired surrogate: a database stores all of those as the same character. */
export function actor(owner: string, by = owner): Actor {
  return { owner: checkText(owner, 'owner'), by: checkText(by, 'name of who acts') };
}
