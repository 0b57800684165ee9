import { expect, test } from 'vitest';
import type { PermissionDecision, PermissionQuestion } from '../connection.ts';
import { Control } from './control.ts';

function setUp() {
  const sent: { type: string; request_id?: string; request?: unknown; response?: Record<string, unknown> }[] = [];
  const asked: PermissionQuestion[] = [];
  const answers: ((decision: PermissionDecision) => void)[] = [];
  const control = new Control(
    (message) => sent.push(message as never),
    (question) => {
      asked.push(question);
      return new Promise((resolve) => answers.push(resolve));
    },
  );
  const question = (id: string, more: object = {}) =>
    control.read({
      type: 'control_request',
      request_id: id,
      request: { subtype: 'can_use_tool', tool_name: 'Bash', input: { command: 'ls' }, ...more },
    });
  return { control, sent, asked, answers, question };
}
const nextTick = () => new Promise((resolve) => setImmediate(resolve));

test('our requests are answered by id, also with an error', async () => {
  const { control, sent } = setUp();
  const [one, two] = [control.ask({ subtype: 'initialize' }), control.ask({ subtype: 'strange' })];
  expect(sent[0]).toMatchObject({ type: 'control_request', request: { subtype: 'initialize' } });
  const [first, second] = sent.map(({ request_id }) => request_id);
  const error = { subtype: 'error', request_id: second, error: 'Unsupported' };
  expect(control.read({ type: 'control_response', response: error })).toBe(true);
  control.read({ type: 'control_response', response: { subtype: 'success', request_id: first, response: { pid: 7 } } });
  expect(await one).toEqual({ ok: true, response: { pid: 7 } });
  expect(await two).toEqual({ ok: false, error: 'Unsupported' });
});

test('a request without an answer gets null when Claude ends', async () => {
  const { control } = setUp();
  const asking = control.ask({ subtype: 'interrupt' });
  control.end();
  expect(await asking).toBeNull();
});

test('a permission is asked for, and the answer goes back under the same id', async () => {
  const { sent, asked, answers, question } = setUp();
  question('q1', { tool_use_id: 'toolu_1', permission_suggestions: [{ type: 'addRules' }], title: 'May I?' });
  expect(asked[0]).toMatchObject({ toolName: 'Bash', toolUseId: 'toolu_1', title: 'May I?', suggestions: [{}] });
  answers[0]?.({ behavior: 'allow', updatedInput: { command: 'ls' } });
  await nextTick();
  expect(sent[0]).toEqual({
    type: 'control_response',
    response: {
      subtype: 'success',
      request_id: 'q1',
      response: { behavior: 'allow', updatedInput: { command: 'ls' }, toolUseID: 'toolu_1' },
    },
  });
});

test('a question may lack the id of its call and suggestions', async () => {
  const { sent, asked, answers, question } = setUp();
  question('q1');
  expect(asked[0]).toMatchObject({ toolUseId: null, suggestions: [], title: null });
  answers[0]?.({ behavior: 'deny', message: 'no' });
  await nextTick();
  expect(sent[0]?.response?.response).toEqual({ behavior: 'deny', message: 'no' });
});

test('a question that Claude withdraws is aborted and not answered', async () => {
  const { control, sent, asked, answers, question } = setUp();
  question('q1');
  control.read({ type: 'control_cancel_request', request_id: 'q1' });
  expect(asked[0]?.signal.aborted).toBe(true);
  answers[0]?.({ behavior: 'allow', updatedInput: {} });
  await nextTick();
  expect(sent).toEqual([]);
});

test('an unknown request is refused, so that Claude does not wait', () => {
  const { control, sent } = setUp();
  control.read({ type: 'control_request', request_id: 'h1', request: { subtype: 'hook_callback' } });
  expect(sent[0]?.response).toMatchObject({ subtype: 'error', request_id: 'h1' });
});

test('messages of the conversation are not consumed', () => {
  expect(setUp().control.read({ type: 'assistant' })).toBe(false);
});
