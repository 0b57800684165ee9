import { ClaudeRefusal } from '../connection.ts';

/** What Claude says when it does not open a session, and what that means. Seen with 1.0.30, 1.0.128 and 2.1.325. */
const SAYINGS: readonly (readonly [RegExp, ClaudeRefusal['reason']])[] = [
  [/No conversation found/i, 'not_found'],
  [/is not a UUID and does not match any session title/i, 'not_found'],
  // Its transcript exists; there is no lock. On an id that we have recorded it means that an earlier attempt arrived.
  [/Session ID \S+ is already in use/i, 'in_use'],
  // No version seen has a lock; one that comes by it and says so is worth waiting for.
  [/session (?:\S+ )?is locked|locked by another process/i, 'locked'],
];

/** Null: it ended for another reason. */
export function refusalOf(complaint: string): ClaudeRefusal | null {
  const said = SAYINGS.find(([words]) => words.test(complaint));
  return said === undefined ? null : new ClaudeRefusal(said[1], lineWith(said[0], complaint));
}

function lineWith(words: RegExp, text: string): string {
  const line = text.split('\n').find((one) => words.test(one)) ?? text;
  return line.replace(/^.*?(?:\bError: )/, '').trim();
}
