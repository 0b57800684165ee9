import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Throughline } from '../../../src/index.ts';
import type { Agent, AgentEvent } from '../../../src/ports/agent.ts';
import { allEvents, effects, ended, event, refusedWith, run, until } from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { sentTo } from '../support/stored.ts';

const ASK = '/ask May I write?\n/tool write effects.log';

/** A turn that waits for the answer to its question. */
async function turnWithQuestion(home: Home, tl: Throughline, prompt = ASK) {
  const conversation = await tl.engine.ensure({ key: 'chat' });
  const { turn } = await tl.engine.submit('chat', prompt);
  const asked = await event(tl.engine, 'chat', 'permission.asked', { turn: turn.id });
  const log = join(home.sandboxes, conversation.id, 'work', 'effects.log');
  return { turn, asked, id: asked.payload.permissionId, log };
}

test('a question waits for its answer, which may come from another process', async () => {
  await using home = new Home();
  const [tl, other] = await Promise.all([home.open(), home.host()]);
  const { turn, id, log } = await turnWithQuestion(home, tl);
  expect((await other.engine.turn(turn.id)).state).toBe('waiting');
  const open = await other.engine.permissions({ conversation: 'chat', open: true });
  expect(open).toMatchObject([{ id, title: 'May I write?', state: 'open', toolCall: { title: 'write' } }]);
  expect(effects(log)).toBe(0);
  expect(await other.engine.answer(id, 'allow')).toMatchObject({ state: 'answered', optionId: 'allow' });
  expect((await ended(tl.engine, turn)).state).toBe('completed');
  expect(effects(log)).toBe(1);
  expect(await tl.engine.permissions({ open: true })).toEqual([]);
});

test('after a rejection the tool does not run, and the turn continues', async () => {
  await using home = new Home();
  const tl = await home.open();
  const { turn, id, log } = await turnWithQuestion(home, tl);
  await tl.engine.answer(id, 'reject');
  expect(await ended(tl.engine, turn)).toMatchObject({ state: 'completed' });
  expect((await tl.engine.answerOf(turn.id)).reply).toBe('Permission denied: May I write?.');
  expect(effects(log)).toBe(0);
});

test('of two answers at the same time the first one counts, and the other is refused', async () => {
  await using home = new Home();
  const [tl, other] = await Promise.all([home.open(), home.host()]);
  const { turn, id, log } = await turnWithQuestion(home, tl);
  const answers = await Promise.allSettled([tl.engine.answer(id, 'reject'), other.engine.answer(id, 'allow')]);
  expect(answers.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  const lost = answers.find((answer) => answer.status === 'rejected');
  expect(lost?.reason).toMatchObject({ code: 'conflict' });
  await ended(tl.engine, turn);
  const [permission] = await tl.engine.permissions({ conversation: 'chat' });
  expect(await tl.engine.permissions({ conversation: 'chat', fromTurn: 1, toTurn: 1 })).toEqual([permission]);
  expect(await tl.engine.permissions({ conversation: 'chat', fromTurn: 2 })).toEqual([]);
  await expect(tl.engine.permissions({ toTurn: 2 })).rejects.toMatchObject({ code: 'invalid' });
  expect(effects(log)).toBe(permission?.optionId === 'allow' ? 1 : 0);
});

test('an answer that the agent did not offer is refused, and the question stays open', async () => {
  await using home = new Home();
  const tl = await home.open();
  const { turn, id } = await turnWithQuestion(home, tl);
  await refusedWith('invalid', tl.engine.answer(id, 'perhaps'));
  await tl.engine.answer(id, 'allow');
  expect((await ended(tl.engine, turn)).state).toBe('completed');
});

test('a question that nobody answers in time is denied', async () => {
  await using home = new Home();
  const tl = await home.open({ permissionMs: 80 });
  const { turn, id, log } = await turnWithQuestion(home, tl);
  await ended(tl.engine, turn);
  expect((await tl.engine.answerOf(turn.id)).reply).toContain('Permission denied');
  expect(effects(log)).toBe(0);
  const reason = 'nobody answered within 0.08 seconds';
  const denied = { state: 'denied', optionId: null, answeredBy: null, reason };
  expect(await tl.engine.permissions()).toMatchObject([{ id, ...denied }]);
  expect((await event(tl.engine, 'chat', 'permission.denied')).payload).toEqual({ permissionId: id, reason });
  expect((await tl.engine.answerOf(turn.id)).denied).toEqual([{ permissionId: id, title: 'May I write?', reason }]);
  await refusedWith('conflict', tl.engine.answer(id, 'allow'));
});

test('a question is denied at once where nobody can answer', async () => {
  await using home = new Home();
  const tl = await home.open({ permissionMs: 600_000 });
  await tl.engine.ensure({ key: 'chat' });
  const { turn, reply } = await run(tl.engine, 'chat', ASK, { permissions: 'deny' });
  expect(turn.state).toBe('completed');
  expect(reply).toContain('Permission denied');
  expect(await tl.engine.permissions()).toMatchObject([{ state: 'denied', reason: 'nobody can answer here' }]);
});

test('an agent that gives up when it is denied fails the turn with its own code', async () => {
  await using home = new Home();
  const tl = await home.open();
  const { turn, id } = await turnWithQuestion(home, tl, '/ask! May I write?\n/tool write effects.log');
  await tl.engine.answer(id, 'reject');
  expect(await ended(tl.engine, turn)).toMatchObject({ state: 'failed', failure: { code: 'permission_denied' } });
});

test('a question is withdrawn when its turn is cancelled, and can no longer be answered', async () => {
  await using home = new Home();
  const tl = await home.open();
  const { turn, id, log } = await turnWithQuestion(home, tl);
  await tl.engine.cancel(turn.id);
  expect((await ended(tl.engine, turn)).state).toBe('cancelled');
  expect(await tl.engine.permissions()).toMatchObject([{ state: 'withdrawn' }]);
  await refusedWith('conflict', tl.engine.answer(id, 'allow'));
  expect(effects(log)).toBe(0);
});

test('a question is withdrawn when its agent dies', async () => {
  await using home = new Home();
  const tl = await home.open();
  const { turn } = await turnWithQuestion(home, tl);
  process.kill(sentTo(home, turn.id).pid, 'SIGKILL');
  expect(await ended(tl.engine, turn)).toMatchObject({ state: 'interrupted', failure: { code: 'agent_died' } });
  expect(await tl.engine.permissions()).toMatchObject([{ state: 'withdrawn' }]);
});

test('a question is withdrawn when the process that ran its turn was killed', async () => {
  await using home = new Home();
  const [tl, runner] = await Promise.all([home.open(), home.host()]);
  await runner.engine.ensure({ key: 'chat' });
  const { turn } = await runner.engine.submit('chat', ASK);
  await event(tl.engine, 'chat', 'permission.asked');
  await runner.kill();
  const next = await run(tl.engine, 'chat', 'Hello.');
  expect(next.turn.state).toBe('completed');
  expect((await tl.engine.turn(turn.id)).state).toBe('interrupted');
  expect(await tl.engine.permissions()).toMatchObject([{ state: 'withdrawn' }]);
});

test('a question whose process was killed cannot be answered, because no process waits for the answer', async () => {
  await using home = new Home();
  const [tl, runner] = await Promise.all([home.open(), home.host()]);
  await runner.engine.ensure({ key: 'chat' });
  const { turn } = await runner.engine.submit('chat', ASK);
  const asked = await event(tl.engine, 'chat', 'permission.asked');
  await runner.kill();
  await refusedWith('conflict', tl.engine.answer(asked.payload.permissionId, 'allow'));
  const { reply } = await run(tl.engine, 'chat', 'Hello.');
  expect(reply).not.toBe('');
  expect((await tl.engine.turn(turn.id)).state).toBe('interrupted');
  expect(await tl.engine.permissions()).toMatchObject([{ state: 'withdrawn', answeredBy: null }]);
});

test('a question stays open when its reader has gone: a new reader finds and answers it', async () => {
  await using home = new Home();
  const tl = await home.open();
  const { turn, asked } = await turnWithQuestion(home, tl); // nobody follows the conversation now
  const reader = await home.host(); // like a page that was reloaded
  const seen = await reader.calls.followUntil('chat', asked.seq - 1, 'permission.asked');
  expect(seen).toMatchObject([{ seq: asked.seq, payload: { permissionId: asked.payload.permissionId } }]);
  const rest = reader.calls.followUntil('chat', asked.seq, 'turn.ended');
  await reader.engine.answer(asked.payload.permissionId, 'allow');
  expect((await rest).map(({ kind }) => kind)).toEqual(expect.arrayContaining(['permission.answered', 'turn.ended']));
  expect((await tl.engine.turn(turn.id)).state).toBe('completed');
});

test('while a question is open the lease is renewed, however long that takes', async () => {
  await using home = new Home();
  const tl = await home.open({ leaseMs: 600 });
  const { turn, id } = await turnWithQuestion(home, tl);
  const leases = () => home.query<{ epoch: number; ready_at: number }>('SELECT epoch, ready_at FROM leases');
  const [before] = leases();
  await until('two terms have passed', () => (leases()[0]?.ready_at ?? 0) > (before?.ready_at ?? 0) + 1_200);
  expect(leases()[0]?.epoch).toBe(before?.epoch);
  await tl.engine.answer(id, 'allow');
  expect((await ended(tl.engine, turn)).state).toBe('completed');
  expect((await allEvents(tl.engine, 'chat')).filter(({ kind }) => kind === 'turn.started').length).toBe(1);
});

/** The agent, with its questions changed. All answers to them are added to `answers`. */
function withChangedQuestions(
  agent: Agent,
  change: (question: Question) => Question,
  answers: (string | null)[],
): Agent {
  return {
    ...agent,
    open: async (request) => {
      const opened = await agent.open(request);
      if (!opened.ok) return opened;
      const { session } = opened;
      const [prompt, answer] = [session.prompt.bind(session), session.answer.bind(session)];
      session.prompt = async function* (given) {
        for await (const one of prompt(given)) yield one.type === 'permission' ? change(one) : one;
      };
      session.answer = (id, optionId) => {
        answers.push(optionId);
        answer(id, optionId);
      };
      return opened;
    },
  };
}
type Question = Extract<AgentEvent, { type: 'permission' }>;

test('what an agent asks after its turn was told to stop is not stored, and gets no answer', async () => {
  await using home = new Home();
  const answers: (string | null)[] = [];
  const allow = { optionId: 'allow', name: 'Allow', kind: 'allow_once' } as const;
  const late: Question = { type: 'permission', id: 'late', title: 'Late?', toolCall: {}, options: [allow] };
  /** It asks when it was told to stop. */
  const asksLate = (agent: Agent): Agent => ({
    ...agent,
    open: async (request) => {
      const opened = await agent.open(request);
      if (!opened.ok) return opened;
      const { session } = opened;
      const prompt = session.prompt.bind(session);
      session.prompt = async function* (given) {
        for await (const one of prompt(given)) {
          if (given.signal.aborted) yield late;
          yield one;
        }
      };
      session.answer = (_, optionId) => void answers.push(optionId);
      return opened;
    },
  });
  const engine = await home.engine({ agent: asksLate });
  await engine.ensure({ key: 'chat' });
  const { turn } = await engine.submit('chat', '/say beginning\n/hang');
  await event(engine, 'chat', 'turn.update', { turn: turn.id });
  await engine.cancel(turn.id);
  expect((await ended(engine, turn)).state).toBe('cancelled');
  expect(answers).toEqual([null]);
  expect(await engine.permissions()).toEqual([]);
});

test('a question whose options share an id is denied, and the agent gets no answer to it', async () => {
  await using home = new Home();
  const answers: (string | null)[] = [];
  const sameIds = (question: Question) => ({
    ...question,
    options: question.options.map((one) => ({ ...one, optionId: 'allow' })),
  });
  const engine = await home.engine({ agent: (agent) => withChangedQuestions(agent, sameIds, answers) });
  const { turn } = await run(engine, 'chat', ASK, { permissions: 'ask' });
  const [permission] = await engine.permissions({ conversation: 'chat' });
  const reason = 'it cannot be answered: two of its options have the id "allow"';
  expect(permission).toMatchObject({ state: 'denied', reason });
  await refusedWith('conflict', engine.answer(permission?.id ?? '', 'allow'));
  expect(answers).toEqual([null]);
  expect((await engine.answerOf(turn.id)).denied).toMatchObject([{ reason }]);
});

test('a question of 20 MB is stored and shown shortened, and can be answered', async () => {
  await using home = new Home();
  const huge = (question: Question) => ({
    ...question,
    title: `rm ${'x'.repeat(20_000_000)} end`,
    toolCall: { title: 'rm', rawInput: { command: 'y'.repeat(20_000_000) } },
  });
  const engine = await home.engine({ agent: (agent) => withChangedQuestions(agent, huge, []) });
  const { turn } = await engine.submit('chat', ASK, { permissions: 'ask' });
  const { payload } = await event(engine, 'chat', 'permission.asked', { turn: turn.id });
  expect(JSON.stringify(payload).length).toBeLessThan(20_000);
  expect(payload.title).toMatch(/^rm x+\n\[… \d+ characters left out …\]\nx+ end$/);
  const permission = await engine.permission(payload.permissionId);
  expect(JSON.stringify(permission).length).toBeLessThan(20_000);
  await engine.answer(permission.id, 'allow');
  expect((await ended(engine, turn)).state).toBe('completed');
});
