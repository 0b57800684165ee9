import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { history } from '../../test/values/arbitrary.ts';
import { record } from '../../test/values/plain.ts';
import { faultOf } from '../../test/values/thrown.ts';
import { wellFormed } from './input/well-formed.ts';
import { EXPORT_FORMAT, type ExportedConversation, exportSteps } from './portable.ts';
import { DEFAULT_RESTORE } from './restore/restore-settings.ts';
import { NO_USAGE } from './turn/usage.ts';

const CONVERSATION = { key: 'door', title: 'The door', agent: 'agent', restore: DEFAULT_RESTORE };
const SESSION = { id: 's', agent: 'agent', origin: 'new', parent: null, watermark: 1 };

function parseExport(input: unknown): ExportedConversation {
  const steps = exportSteps(input);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

function exported(told: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    format: EXPORT_FORMAT,
    version: 1,
    conversation: CONVERSATION,
    records: [record(1)],
    sessions: [SESSION],
    ...told,
  };
}

const withRecord = (told: object) => exported({ records: [record(1), { ...record(2), ...told }] });
const withSession = (told: object) => exported({ sessions: [{ ...SESSION, ...told }] });
const tool = {
  type: 'tool',
  id: '1',
  name: 'x',
  kind: 'other',
  target: null,
  input: 1,
  output: null,
  status: 'failed',
};

test('an export is read back unchanged', () => {
  expect(parseExport(exported())).toEqual(exported());
});

test('every history is unchanged after it is written and read', () => {
  fc.assert(
    fc.property(history, (records) => {
      const written = JSON.parse(JSON.stringify(exported({ records, sessions: [] })));
      expect(parseExport(written)).toEqual(wellFormed(written));
    }),
  );
});

describe('a fault is reported with its place', () => {
  test.each([
    [7, /has no "format"/],
    [exported({ format: 'other' }), /has no "format"/],
    [exported({ version: 2n }), /it has version a bigint, and this program reads version 1/],
    [exported({ conversation: null }), /"conversation" is missing/],
    [exported({ conversation: { ...CONVERSATION, key: 7 } }), /"conversation.key" must be a text or null/],
    [
      exported({ conversation: { ...CONVERSATION, key: 'a\u001b[31m' } }),
      /conversation.key: A key must not contain control/,
    ],
    [
      exported({ conversation: { ...CONVERSATION, key: '\ud800' } }),
      /conversation.key: The key contains an unpaired surrogate, U\+D800 at index 0\.$/,
    ],
    [
      exported({ conversation: { ...CONVERSATION, key: 'x'.repeat(513) } }),
      /conversation.key: A key can have at most 512/,
    ],
    [exported({ conversation: { ...CONVERSATION, agent: 'x'.repeat(5_000) } }), /"conversation.agent" must be a text/],
    [exported({ conversation: { ...CONVERSATION, title: null } }), /"conversation.title" must be a text/],
    [exported({ conversation: { ...CONVERSATION, restore: { policy: 'x' } } }), /^"conversation\.restore\.policy"/],
    [exported({ records: {} }), /"records" must be a list/],
    [exported({ records: [record(2), record(2)] }), /the record after turn 2 has the number 2; numbers must rise/],
    [exported({ records: [record(0)] }), /numbers must rise/],
    [exported({ records: [record(2 ** 31)] }), /has the number 2147483648; numbers must rise, to 2147483647 at most/],
    [withRecord({ version: 2 }), /the record of turn 2 has an unknown version/],
    [withRecord({ agent: null }), /the record of turn 2 names no agent/],
    [withRecord({ sessionId: {} }), /turn 2 has a session id that is neither a text nor null/],
    [withRecord({ outcome: 'queued' }), /turn 2 has no known outcome/],
    [withRecord({ failure: 'x' }), /turn 2 has a failure that cannot be read/],
    [withRecord({ failure: { code: 'odd', message: 'x' } }), /turn 2 has a failure that cannot be read/],
    [withRecord({ sessionId: '' }), /turn 2 has a session id that is neither a text nor null/],
    [withRecord({ endedAt: null }), /turn 2 has no time "endedAt"/],
    [withRecord({ startedAt: -1 }), /turn 2 has no time "startedAt"/],
    [withRecord({ endedAt: 8.64e15 + 1 }), /turn 2 has no time "endedAt"/],
    [withRecord({ usage: null }), /turn 2 has no usage/],
    [withRecord({ usage: { ...NO_USAGE, modelCalls: '1' } }), /turn 2 has no usage "modelCalls"/],
    [withRecord({ usage: { ...NO_USAGE, modelCalls: 1e300 } }), /turn 2 has no usage "modelCalls"/],
    [withRecord({ usage: { ...NO_USAGE, unknownCosts: '1' } }), /turn 2 has a usage "unknownCosts" that is no number/],
    [withRecord({ prompt: [{ type: 'text' }] }), /turn 2: Prompt block 1 \(text\) needs the text field "text"\.$/],
    [
      withRecord({ prompt: [{ type: 'text', text: 'a\udc00' }] }),
      /turn 2: Prompt block 1 \(text\) contains an unpaired surrogate, U\+DC00 at index 1\.$/,
    ],
    [withRecord({ sessionId: '\ud800' }), /turn 2 has a session id that is neither a text nor null/],
    [withRecord({ parts: [{ type: 'text' }] }), /turn 2 has a part that cannot be read/],
    [withRecord({ parts: [{ ...tool, status: 'running' }] }), /turn 2 has a part that cannot be read/],
    [withRecord({ parts: [{ ...tool, target: 7 }] }), /turn 2 has a part that cannot be read/],
    [exported({ sessions: 'x' }), /"sessions" must be a list/],
    [withSession({ id: 7 }), /a session has no id or no agent/],
    [withSession({ origin: 'x' }), /the session s has no known origin/],
    [withSession({ parent: 7 }), /the session s has a parent that is neither/],
    [withSession({ id: 'x'.repeat(5_000) }), /a session has no id or no agent/],
    [withSession({ watermark: '1' }), /the session s has the watermark "1"; it must be the number of a turn up to 1/],
    [withSession({ watermark: 2 }), /the session s has the watermark 2; it must be the number of a turn up to 1/],
  ])('%#', (value, message) => {
    const fault = faultOf(() => parseExport(value));
    expect(fault?.code).toBe('invalid');
    expect(fault?.message).toMatch(message);
  });
});

test('a turn that is too large to be stored in one step is refused, with its number', () => {
  const parts = Array.from({ length: 13 }, () => ({ type: 'text', text: 'x'.repeat(1_048_576) }));
  expect(faultOf(() => parseExport(withRecord({ parts })))).toMatchObject({
    ...{ code: 'too_large', message: 'Turn 2 has more than 12 MiB.', hint: expect.any(String) },
  });
  expect(parseExport(withRecord({ parts: parts.slice(0, 11) })).records).toHaveLength(2);
});

test('a title that would be refused is shortened, because the caller did not choose it', () => {
  const title = `a\u0007b\n${'x'.repeat(600)}`;
  const read = parseExport(exported({ conversation: { ...CONVERSATION, title } })).conversation.title;
  expect(read).toBe(`a b ${'x'.repeat(507)}…`);
});

test('an unpaired surrogate in the words of an agent is read as U+FFFD', () => {
  const parts = [
    { type: 'text', text: 'a\ud800' },
    { ...tool, output: '\udc00', input: { of: '\ud800' } },
  ];
  const [, read] = parseExport(withRecord({ parts, failure: { code: 'agent_failed', message: '\ud800' } })).records;
  expect(read).toMatchObject({
    parts: [{ text: 'a\ufffd' }, { output: '\ufffd', input: { of: '\ufffd' } }],
    failure: { message: '\ufffd' },
  });
});

test('a tool with every known end is read', () => {
  const parts = ['completed', 'failed', 'unknown'].map((status) => ({ ...tool, status }));
  expect(faultOf(() => parseExport(withRecord({ parts })))).toBeNull();
});

test('an export with any one value replaced is accepted or refused, and nothing else is thrown', () => {
  const paths = pathsOf(exported({ records: [{ ...record(1), parts: [tool] }] }));
  const anything = fc.anything({ withBigInt: true, withNullPrototype: true, withSparseArray: true });
  fc.assert(
    fc.property(fc.constantFrom(...paths), anything, (path, value) => {
      const whole = structuredClone(exported({ records: [{ ...record(1), parts: [tool] }] }));
      replaceAt(whole, path, value);
      const fault = faultOf(() => parseExport(whole));
      if (fault !== null) expect(fault.code).toBe('invalid');
    }),
    { numRuns: 2_000 },
  );
});

type Path = readonly (string | number)[];

function pathsOf(value: unknown): Path[] {
  if (typeof value !== 'object' || value === null) return [[]];
  const below = Object.entries(value).flatMap(([name, inner]) => pathsOf(inner).map((path) => [name, ...path]));
  return [...Object.keys(value).map((name) => [name]), ...below];
}

function replaceAt(root: object, path: Path, value: unknown): void {
  let at = root as Record<string | number, unknown>;
  for (const name of path.slice(0, -1)) at = at[name] as Record<string | number, unknown>;
  at[path.at(-1) ?? ''] = value;
}
