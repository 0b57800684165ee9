import { expect, test } from 'vitest';
import type { AgentEvent } from '../../../ports/agent.ts';
import type { PermissionQuestion } from '../connection.ts';
import { Questions } from './questions.ts';

const RULE = { type: 'addRules', rules: [{ toolName: 'Bash' }], behavior: 'allow', destination: 'localSettings' };
const MODE = { type: 'setMode', mode: 'acceptEdits', destination: 'session' };

function asked(more: Partial<PermissionQuestion> = {}) {
  const questions = new Questions();
  const events: Extract<AgentEvent, { type: 'permission' }>[] = [];
  questions.begin((event) => events.push(event as Extract<AgentEvent, { type: 'permission' }>));
  const decision = questions.ask({
    toolName: 'Bash',
    input: { command: 'ls' },
    toolUseId: 'toolu_1',
    suggestions: [RULE, MODE],
    title: null,
    signal: new AbortController().signal,
    ...more,
  });
  const [event] = events;
  return { questions, decision, event, answer: (option: string | null) => questions.answer(event?.id ?? '', option) };
}

test('a question shows what Claude wants to do', async () => {
  const { event } = asked();
  expect(event?.title).toBe('Claude wants to use Bash: ls');
  expect(event?.toolCall).toMatchObject({ toolCallId: 'toolu_1', title: 'Bash', rawInput: { command: 'ls' } });
  expect(event?.options.map(({ kind }) => kind)).toEqual(['allow_once', 'allow_always', 'reject_once']);
  expect(asked({ suggestions: [] }).event?.options.map(({ kind }) => kind)).toEqual(['allow_once', 'reject_once']);
});

test('an answer goes back once', async () => {
  const { decision, answer } = asked();
  answer('allow');
  answer('reject');
  expect(await decision).toEqual({ behavior: 'allow', updatedInput: { command: 'ls' } });
});

test('"always" adds a rule for this session: no settings file is edited, and the mode stays', async () => {
  const { decision, answer } = asked();
  answer('allow_always');
  expect(await decision).toMatchObject({ updatedPermissions: [{ ...RULE, destination: 'session' }] });
  const only = asked({ suggestions: [MODE] });
  only.answer('allow_always');
  expect(await only.decision).toMatchObject({ updatedPermissions: [MODE] });
});

test('a question is denied when it is rejected or withdrawn, when the turn is over, and without a turn', async () => {
  const abort = new AbortController();
  const [rejected, cancelled, over, withdrawn] = [asked(), asked(), asked(), asked({ signal: abort.signal })];
  rejected.answer('reject');
  cancelled.answer(null);
  over.questions.end();
  abort.abort();
  for (const { decision } of [rejected, cancelled, over, withdrawn])
    expect(await decision).toMatchObject({ behavior: 'deny' });
  const { questions } = over;
  const late = { toolName: 'Bash', input: {}, toolUseId: null, suggestions: [], title: null };
  expect(await questions.ask({ ...late, signal: new AbortController().signal })).toMatchObject({ behavior: 'deny' });
});
