import type * as z from 'zod';
import { ThroughlineError } from '../../core/errors.ts';
import { shown } from '../../core/input/arguments.ts';
import { dotted } from '../../core/input/schema.ts';

/*
 * What is wrong with a request, in sentences: the field, what it must be, and what was sent. The schema library reports types and
 * patterns; these are the words for them. `wrong-request.test.ts` finds a kind of schema that has no words yet.
 */

export type Part = 'path' | 'query' | 'body';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

interface Wrong {
  readonly says: string;
  readonly hint?: string | undefined;
}

const MOST_SENTENCES = 3;
const LONGEST_NAME = 80;
const FIELD_OF = { path: 'part of this path', query: 'parameter of this request', body: 'field of this request' };

/** Makes `invalid` from the issues that a schema found in a part of a request. */
export function wrongRequest(issues: readonly Issue[], value: unknown, part: Part, known: readonly string[]) {
  const all = issues.slice(0, MOST_SENTENCES).flatMap((issue) => wrongOf(issue, value, part, known));
  const says = all.slice(0, MOST_SENTENCES).map((one) => one.says);
  return invalid(says.join(' '), all.find(({ hint }) => hint !== undefined)?.hint);
}

/** For an operation without such a part. */
export function noFields(field: string, part: Part): ThroughlineError {
  const hint = part === 'body' ? 'This request has no fields. Leave the body out.' : 'This request has no parameters.';
  return invalid(`${quoted([field])} is not a ${FIELD_OF[part]}.`, hint);
}

export function invalid(message: string, hint?: string): ThroughlineError {
  return new ThroughlineError('invalid', message, { hint });
}

function wrongOf(issue: Issue, value: unknown, part: Part, known: readonly string[]): Wrong[] {
  const fields =
    known.length > 0 ? `Known ${part === 'body' ? 'fields' : 'parameters'}: ${known.join(', ')}.` : undefined;
  if (issue.code === 'unrecognized_keys') {
    const hint = issue.path.length === 0 ? fields : '"/openapi.json" on this server describes the request.';
    return issue.keys.map((key) => ({ says: `${quoted([...issue.path, key])} is not a ${FIELD_OF[part]}.`, hint }));
  }
  if (issue.code === 'invalid_key') {
    const [inner] = issue.issues;
    return [
      { says: `A name in ${quoted(issue.path.slice(0, -1))} ${inner === undefined ? 'is wrong' : must(inner)}.` },
    ];
  }
  const at = valueAt(value, issue.path);
  if (issue.code === 'invalid_union' && issue.discriminator === undefined) return wrongOfUnion(issue, value, part);
  if (at === undefined) {
    const words = must(issue);
    return [{ says: `${quoted(issue.path)} is missing.`, hint: words === IS_NEEDED ? fields : `It ${words}.` }];
  }
  return [{ says: `${quoted(issue.path)} ${must(issue)}${instead(issue, at)}.` }];
}

/** Reports what is wrong with the form that the caller seems to have meant: the one whose type is right. */
function wrongOfUnion({ errors, path }: z.core.$ZodIssueInvalidUnion, value: unknown, part: Part): Wrong[] {
  const typeOf = (issues: readonly Issue[]) =>
    issues.find((one) => one.path.length === 0 && one.code === 'invalid_type');
  const meant = errors
    .filter((issues) => typeOf(issues) === undefined)
    .map((issues) => issues.map((one) => ({ ...one, path: [...path, ...one.path] })));
  const [only = []] = meant;
  if (meant.length === 0) {
    const types = new Set(errors.flatMap((issues) => typeOf(issues) ?? []).map(typeWords));
    const words = `must be ${[...types].join(' or ')}`;
    const at = valueAt(value, path);
    if (at === undefined) return [{ says: `${quoted(path)} is missing.`, hint: `It ${words}.` }];
    return [{ says: `${quoted(path)} ${words}, not ${asSent(at)}.` }];
  }
  const missing = meant.map((issues) => issues.find((one) => valueAt(value, one.path) === undefined)?.path.at(-1));
  const wrong = only.filter((one) => valueAt(value, one.path) !== undefined);
  if (meant.length > 1 && wrong.length === 0 && !missing.includes(undefined))
    return [{ says: `${quoted(path)} needs ${missing.map((name) => `"${String(name)}"`).join(' or ')}.` }];
  return (wrong.length > 0 ? wrong : only).flatMap((one) => wrongOf(one, value, part, []));
}

const IS_NEEDED = 'must be there';

/** "must be a text", "must not be empty": what follows the name of the field. */
function must(issue: Issue): string {
  if (issue.message.startsWith('must ')) return issue.message; // written beside the schema, in `wire/`
  switch (issue.code) {
    case 'invalid_type':
      return issue.expected === ('nonoptional' as string) ? IS_NEEDED : `must be ${typeWords(issue)}`;
    case 'invalid_value':
      return `must be ${choice(issue.values)}`;
    case 'invalid_union':
      return `must be ${choice((issue as { options?: readonly unknown[] }).options ?? [])}`;
    case 'too_small':
      if (issue.origin === 'string' || issue.origin === 'array') return 'must not be empty';
      return `must be ${issue.inclusive ? `${issue.minimum} or more` : `more than ${issue.minimum}`}`;
    case 'too_big':
      if (issue.origin === 'string') return `may have at most ${issue.maximum} characters`;
      if (issue.origin === 'array') return `may have at most ${issue.maximum} values`;
      return `must be at most ${issue.maximum}`;
    default:
      return 'is not valid';
  }
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

function typeWords(issue: Issue): string {
  return (issue.code === 'invalid_type' && TYPE_WORDS[issue.expected]) || 'another value';
}

function choice(values: readonly unknown[]): string {
  if (values.map(String).join() === 'true,false') return 'true or false';
  return values.length === 1 ? shown(values[0]) : `one of ${values.join(', ')}`;
}

/** What was sent, where that helps: not for texts and lists that are empty or too long. */
function instead(issue: Issue, value: unknown): string {
  const isSize = (issue.code === 'too_small' || issue.code === 'too_big') && ['string', 'array'].includes(issue.origin);
  return isSize ? '' : `, not ${asSent(value)}`;
}

function asSent(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  return shown(typeof value === 'string' ? value.slice(0, 2 * LONGEST_NAME) : value);
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (inner, name) => (inner as Record<PropertyKey, unknown> | null | undefined)?.[name],
    value,
  );
}

/** `"prompt[0].text"`, shortened: a name may be as long as the body. */
function quoted(path: Path): string {
  const name = dotted(path.map((part) => (typeof part === 'number' ? part : String(part))));
  return `"${name.length <= LONGEST_NAME ? name : `${name.slice(0, LONGEST_NAME)}…`}"`;
}
