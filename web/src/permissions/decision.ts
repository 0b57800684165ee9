import type { Permission } from 'throughline/client';
import { type Asked, askedOf } from './asked.ts';

/** How a question ended, as the line of its turn says it: `what` `words`. */
export interface Decision {
  /** What was asked: a command or a path, else the title of the question. */
  readonly what: string;
  readonly isCode: boolean;
  /** Before what was asked: `Changing`; empty: nothing. */
  readonly doing: string;
  /** `was allowed once by you`. */
  readonly words: string;
  readonly kind: 'allowed' | 'refused' | 'unanswered';
  /** Where the answer came from: `on the phone`; null: not known, or from a page like this one. */
  readonly from: string | null;
}

/** `me`: the owner that this page acts for. Null: the question is open. */
export function decisionOf(permission: Permission, me: string): Decision | null {
  const { state, options, optionId, answeredBy, answeredFrom, reason } = permission;
  if (state === 'open') return null;
  const about = { ...aboutOf(askedOf(permission), permission.title), from: answeredFrom && FROM[answeredFrom] };
  if (state === 'denied')
    return { ...about, kind: 'unanswered', words: `was not allowed: ${reason ?? 'nobody answered'}` };
  if (state === 'withdrawn')
    return { ...about, kind: 'unanswered', words: `was not answered: ${reason ?? 'its turn ended'}` };
  const option = options.find((each) => each.optionId === optionId);
  const isRefused = option?.kind.startsWith('reject') ?? false;
  const verb = isRefused ? 'was refused' : option?.kind === 'allow_once' ? 'was allowed once' : 'was allowed';
  // What is allowed or refused for good is said by the agent's own option alone.
  const scope = option?.kind.endsWith('always') ? ` (“${option.name}”)` : '';
  return { ...about, kind: isRefused ? 'refused' : 'allowed', words: `${verb}${scope} by ${whoOf(answeredBy, me)}` };
}

const FROM: Readonly<Record<NonNullable<Permission['answeredFrom']>, string | null>> = {
  page: null,
  phone: 'on the phone',
  command_line: 'on the command line',
  program: 'from a program',
};

const DOING: Readonly<Record<string, string>> = {
  edit: 'Changing',
  delete: 'Deleting',
  move: 'Moving',
  read: 'Reading',
  fetch: 'Opening',
};

function aboutOf({ kind, command, diffs, targets }: Asked, title: string): Pick<Decision, 'what' | 'isCode' | 'doing'> {
  if (command !== null) return { what: command, isCode: true, doing: '' };
  const files = [...new Set([...diffs.map(({ path }) => path), ...targets])];
  const doing = diffs.length > 0 ? 'Changing' : (DOING[kind ?? ''] ?? '');
  const [first] = files;
  if (first === undefined || doing === '') return { what: title, isCode: false, doing: '' };
  return { what: files.length === 1 ? first : `${first} and ${files.length - 1} more`, isCode: true, doing };
}

/** Who answered, for the person who reads it: `you`, `ann`, `you, with key 0f…`. */
export function whoOf(answeredBy: string | null, me: string): string {
  if (answeredBy === null) return 'somebody';
  const [, owner = answeredBy, how = 'page'] = /^(.*) by (.*)$/s.exec(answeredBy) ?? [];
  const who = owner === me ? 'you' : owner;
  if (how === 'page') return who;
  // The token is what the command line and local programs have.
  return how === 'token' ? who : `${who}, with ${how}`;
}
