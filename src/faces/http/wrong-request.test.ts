import { describe, expect, test } from 'vitest';
import type * as z from 'zod';
import type { ThroughlineError } from '../../core/errors.ts';
import type { Operation } from '../../wire/operations/operation.ts';
import { OPERATIONS } from '../../wire/operations.ts';
import { PathParameters } from '../../wire/parameters.ts';
import type { OperationName } from '../../wire/routes.ts';
import { noFields, type Part, wrongRequest } from './wrong-request.ts';

/** The error of the server for a part of a request; null: none. */
function wrongWith(operation: OperationName, part: 'query' | 'body', value: object): ThroughlineError | null {
  const schema = (OPERATIONS[operation] as Operation)[part] as z.ZodObject;
  const { error } = schema.safeParse(value);
  return error ? wrongRequest(error.issues, value, part, Object.keys(schema.shape)) : null;
}

const TRACKED = { requestId: 'r', agentId: null, sessionId: null };
const SINCE = 'must be a day such as 2026-01-31 (UTC), or a time such as 2026-01-31T12:00:00Z';
const CONTENT = 'one of text, image, audio, resource_link, resource';

test.each<[string, OperationName, object, string, string?]>([
  ['a missing text', 'search', {}, '"q" is missing.', 'It must be a text.'],
  ['a missing value of two types', 'submit', {}, '"prompt" is missing.', 'It must be a text or a list.'],
  ['a missing list', 'openStream', {}, '"feeds" is missing.', 'It must be a list.'],
  [
    'a missing value of any type',
    'importConversation',
    {},
    '"exported" is missing.',
    'Known fields: exported, key, cwd, agent.',
  ],
  [
    'a missing and an unknown field',
    'addTasks',
    { tasks: [{}] },
    '"plan" is missing. "tasks" is not a field of this request.',
    'Known fields: plan, requestId.',
  ],
  [
    'an unknown parameter',
    'search',
    { q: 'a', colour: 'red' },
    '"colour" is not a parameter of this request.',
    'Known parameters: q, limit.',
  ],
  [
    'an unknown field in an inner object',
    'ensureConversation',
    { limitPerDay: { eur: 5 } },
    '"limitPerDay.eur" is not a field of this request.',
    '"/openapi.json" on this server describes the request.',
  ],
  [
    'a long unknown name',
    'search',
    { q: 'a', ['x'.repeat(90)]: '' },
    `"${'x'.repeat(80)}…" is not a parameter of this request.`,
  ],
  ['a wrong type: text', 'changeConversation', { title: 5 }, '"title" must be a text, not 5.'],
  ['a wrong type: null', 'submit', { prompt: 'a', agent: null }, '"agent" must be a text, not null.'],
  [
    'a wrong type: flag',
    'submit',
    { prompt: 'a', create: 'yes' },
    '"create" must be true or false or an object, not "yes".',
  ],
  ['a wrong type: list', 'execInSandbox', { command: { a: 1 } }, '"command" must be a list, not an object.'],
  ['a wrong type: object', 'submit', { prompt: 'a', restore: [] }, '"restore" must be an object, not a list.'],
  ['a wrong type: names and values', 'submit', { prompt: 'a', config: 1 }, '"config" must be an object, not 1.'],
  [
    'a wrong type: number',
    'submit',
    { prompt: 'a', limits: { turnSeconds: '9' } },
    '"limits.turnSeconds" must be a number, not "9".',
  ],
  [
    'a wrong type: whole number',
    'retryTask',
    { maxIterations: 1.5 },
    '"maxIterations" must be a whole number, not 1.5.',
  ],
  ['a wrong type in a list', 'execInSandbox', { command: ['a', 5] }, '"command[1]" must be a text, not 5.'],
  ['a wrong type of several', 'submit', { prompt: 5 }, '"prompt" must be a text or a list, not 5.'],
  [
    'a wrong type of several, inside',
    'submit',
    { prompt: 'a', config: { fast: 5 } },
    '"config.fast" must be a text or true or false, not 5.',
  ],
  ['an empty text', 'search', { q: '' }, '"q" must not be empty.'],
  ['an empty list', 'execInSandbox', { command: [] }, '"command" must not be empty.'],
  ['an empty name', 'submit', { prompt: 'a', config: { '': 'x' } }, 'A name in "config" must not be empty.'],
  ['a long text', 'search', { q: 'x'.repeat(513) }, '"q" may have at most 512 characters.'],
  ['a long list', 'newLink', { scopes: Array(9).fill('read') }, '"scopes" may have at most 4 values.'],
  ['a number that is too small', 'retryTask', { maxIterations: 0 }, '"maxIterations" must be 1 or more, not 0.'],
  [
    'a number that is not positive',
    'submit',
    { prompt: 'a', limits: { turnSeconds: 0 } },
    '"limits.turnSeconds" must be more than 0, not 0.',
  ],
  [
    'a number that is too large',
    'retryTask',
    { maxIterations: 10_001 },
    '"maxIterations" must be at most 10000, not 10001.',
  ],
  ['a number that is too large', 'fork', { turn: 1e300 }, '"turn" must be at most 9007199254740991, not 1e+300.'],
  [
    'a value that is not in a list',
    'submit',
    { prompt: 'a', permissions: 'x' },
    '"permissions" must be one of ask, deny, not "x".',
  ],
  ['a flag in the address', 'removeSandbox', { force: 'yes' }, '"force" must be true or false, not "yes".'],
  [
    'a limit that is no number',
    'search',
    { q: 'a', limit: '-1' },
    '"limit" must be a whole number from 1 to 10000, not "-1".',
  ],
  [
    'a limit that is too small',
    'search',
    { q: 'a', limit: '0' },
    '"limit" must be a whole number from 1 to 10000, not "0".',
  ],
  [
    'a limit that is too large',
    'search',
    { q: 'a', limit: '10001' },
    '"limit" must be a whole number from 1 to 10000, not "10001".',
  ],
  ['a number to continue after', 'follow', { after: 'q' }, '"after" must be a whole number, 0 or more, not "q".'],
  [
    'a number to go back from',
    'listEvents',
    { before: '0' },
    '"before" must be a whole number, 1 or more, or "end", not "0".',
  ],
  ['the number of a turn', 'listEvents', { turn: '0' }, '"turn" must be a whole number, 1 or more, not "0".'],
  ['a time to wait', 'answerOf', { wait: '61' }, '"wait" must be a whole number from 0 to 60, not "61".'],
  ['a time', 'listConversations', { since: 'now' }, `"since" ${SINCE}, not "now".`],
  ['a day', 'usage', { since: 'now' }, '"since" must be a day such as 2026-01-31, not "now".'],
  ['a page', 'listConversations', { before: '1' }, '"before" must be "next" of the previous page, not "1".'],
  [
    'a page of usage',
    'taskUsage',
    { before: '1' },
    '"before" must be the day and the task of the last row of the previous page, as 2026-01-31_TASK, not "1".',
  ],
  [
    'several states',
    'listTasks',
    { state: 'busy' },
    '"state" must be one or more of waiting, queued, running, asking, done, failed, cancelled, with commas between them, not "busy".',
  ],
  [
    'the name of a program',
    'trackRequest',
    { ...TRACKED, holder: 'x' },
    '"holder" must have 8 to 128 characters: letters of a to z, digits and . _ ~ -, not "x".',
  ],
  [
    'two faults',
    'retryTask',
    { say: '', maxIterations: 0 },
    '"say" must not be empty. "maxIterations" must be 1 or more, not 0.',
  ],
  ['content without a type', 'submit', { prompt: [{}] }, '"prompt[0].type" is missing.', `It must be ${CONTENT}.`],
  [
    'content of an unknown type',
    'submit',
    { prompt: [{ type: 'x' }] },
    `"prompt[0].type" must be ${CONTENT}, not "x".`,
  ],
  [
    'content without its text',
    'submit',
    { prompt: [{ type: 'text' }] },
    '"prompt[0].text" is missing.',
    'It must be a text.',
  ],
  [
    'a resource without its content',
    'submit',
    { prompt: [{ type: 'resource', resource: { uri: 'a' } }] },
    '"prompt[0].resource" needs "text" or "blob".',
  ],
  [
    'a resource with a wrong field',
    'submit',
    { prompt: [{ type: 'resource', resource: { uri: 5 } }] },
    '"prompt[0].resource.uri" must be a text, not 5.',
  ],
  [
    'content without its resource',
    'submit',
    { prompt: [{ type: 'resource' }] },
    '"prompt[0].resource" is missing.',
    'It must be an object.',
  ],
  [
    'an amount that is no number',
    'ensureConversation',
    { limitPerDay: { usd: '5' } },
    '"limitPerDay.usd" must be a number, not "5".',
  ],
])('%s is named', (_, operation, value, detail, hint) => {
  const part = 'query' in OPERATIONS[operation] ? 'query' : 'body';
  const wrong = wrongWith(operation, part, value);
  expect(wrong?.message).toBe(detail);
  if (hint !== undefined) expect(wrong?.hint).toBe(hint);
});

test('a name in the path that is too long is named', () => {
  const value = { conversation: 'x'.repeat(513) };
  const { error } = PathParameters.safeParse(value);
  expect(wrongRequest(error?.issues ?? [], value, 'path', []).message).toBe(
    '"conversation" may have at most 512 characters.',
  );
});

test.each<[Part, string, string]>([
  ['query', '"a" is not a parameter of this request.', 'This request has no parameters.'],
  ['body', '"a" is not a field of this request.', 'This request has no fields. Leave the body out.'],
])('an operation without a %s names the unknown field', (part, detail, hint) => {
  expect(noFields('a', part)).toMatchObject({ code: 'invalid', message: detail, hint });
});

const REQUESTS = (Object.entries(OPERATIONS) as [OperationName, Operation][]).flatMap(([operation, { query, body }]) =>
  (['query', 'body'] as const).flatMap((part) => {
    const schema = { query, body }[part];
    return schema ? [{ operation, part, schema }] : [];
  }),
);

describe('every schema of a request has an error message of our own', () => {
  /** Schemas that a caller's value reaches, with those inside. */
  function* schemasIn(schema: z.core.$ZodType): Generator<z.core.$ZodType> {
    yield schema;
    const def = schema._zod.def as unknown as Record<string, unknown>;
    const inner = [
      def.innerType,
      def.element,
      def.in,
      def.out,
      def.keyType,
      def.valueType,
      ...[def.options ?? []].flat(),
    ];
    for (const one of [...inner, ...Object.values(def.shape ?? {})]) if (one) yield* schemasIn(one as z.core.$ZodType);
  }
  const all = REQUESTS.flatMap(({ schema }) => [...schemasIn(schema)]);

  test('only known kinds of schemas and checks are used', () => {
    const checks = all.flatMap((one) => one._zod.def.checks ?? []).map((check) => check._zod.def.check);
    expect([...new Set(all.map((one) => one._zod.def.type))].sort()).toEqual([
      'array',
      'boolean',
      'enum',
      'literal',
      'nullable',
      'number',
      'object',
      'optional',
      'pipe',
      'record',
      'string',
      'union',
      'unknown',
    ]);
    expect([...new Set(checks)].sort()).toEqual([
      'greater_than',
      'less_than',
      'max_length',
      'min_length',
      'string_format',
    ]);
  });

  test('every pattern has an error message', () => {
    const patterns = all.flatMap((one) => one._zod.def.checks ?? []).map((check) => check._zod.def);
    const silent = patterns.filter(({ check, error }) => check === 'string_format' && error === undefined);
    expect(silent).toEqual([]);
  });
});

const WRONG = [
  undefined,
  null,
  '',
  'x',
  'x'.repeat(200_000),
  true,
  -1,
  1.5,
  1e300,
  [],
  [5],
  [{}],
  {},
  { '': 5 },
  { x: 'y' },
];

test.each(REQUESTS)(
  'a wrong value of $operation ($part) never gives an error text of the schema library',
  ({ operation, part, schema }) => {
    let wrongs = 0;
    for (const field of Object.keys(schema.shape)) {
      for (const value of WRONG) {
        const wrong = wrongWith(operation, part, { [field]: value });
        if (wrong === null) continue;
        wrongs += 1;
        expect(wrong.message).toMatch(/^("[^"]+"|A name in "[^"]+") (is|must|may|needs) .*\.$/);
        expect(`${wrong.message} ${wrong.hint}`).not.toMatch(
          /invalid|expected|received|pattern|union|another value|not valid|nothing/i,
        );
        expect(wrong.message.length).toBeLessThan(700);
      }
    }
    expect(wrongs).toBeGreaterThan(0);
  },
);
