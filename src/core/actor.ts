import { checkText } from './arguments.ts';

/** Who acts: on whose behalf, and by which name the record has it. */
export interface Actor {
  readonly owner: string;
  readonly by: string;
}

/** Halves of characters are all the same to a database, and so would be those whose names have one: `invalid`. */
export function actor(owner: string, by = owner): Actor {
  return { owner: checkText(owner, 'owner'), by: checkText(by, 'name of who acts') };
}
