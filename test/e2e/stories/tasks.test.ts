import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { scriptedAgent } from '../../../src/agents/scripted/adapter.ts';
import type { Turn } from '../../../src/core/turn/turn.ts';
import { ask, TestSandboxes } from '../../contracts/agent-sandbox.ts';
import {
  allEvents,
  codewordsIn,
  ended,
  event,
  refusedWith,
  run,
  until,
  untilReleased,
  WHICH_CODEWORDS,
} from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { storedSessions } from '../support/stored.ts';

// Story 2: an orchestrator names the session of each task. An id that was set for one task was never reset, and leaked into the next.

const WORDS = Array.from({ length: 10 }, (_, i) => `word-${i + 1}`);

test('a naive orchestrator that does not reset the session id leaks one task into the next', async () => {
  const sandboxes = new TestSandboxes();
  try {
    const agent = scriptedAgent({ name: 'claude', options: { ids: 'assigned' } });
    const sandbox = await sandboxes.sandbox();
    let sessionId: string | null = null; // set for the first task and never reset
    const answers: string[] = [];
    for (const word of ['first', 'second']) {
      const how =
        sessionId === null ? { kind: 'new' as const, id: 'task-1' } : { kind: 'resume' as const, id: sessionId };
      const session = await sandboxes.open(agent, sandbox, how);
      sessionId = session.id;
      answers.push((await ask(session, `The codeword is ${word}. ${WHICH_CODEWORDS}`)).reply);
      await session.close();
    }
    expect(answers.map(codewordsIn)).toEqual([['first'], ['first', 'second']]);
  } finally {
    await sandboxes.dispose();
  }
});

test('a naive retry is refused: a new session with that id is in use, and the old one is still locked', async () => {
  const sandboxes = new TestSandboxes();
  try {
    const agent = scriptedAgent({ name: 'claude', options: { ids: 'assigned', lockMs: 60_000 } });
    const sandbox = await sandboxes.sandbox();
    const session = await sandboxes.open(agent, sandbox, { kind: 'new', id: 'task-1' });
    await ask(session, 'The codeword is first.');
    await session.close();
    const { signal } = new AbortController();
    const again = await agent.open({ how: { kind: 'new', id: 'task-1' }, sandbox, noTools: false, signal });
    const resumed = await agent.open({ how: { kind: 'resume', id: 'task-1' }, sandbox, noTools: false, signal });
    expect(again).toMatchObject({ ok: false, reason: 'in_use' });
    expect(resumed).toMatchObject({ ok: false, reason: 'locked' });
  } finally {
    await sandboxes.dispose();
  }
});

test('ten tasks one after another have ten sessions, and none has the codeword of another', async () => {
  await using home = new Home({ claude: { ids: 'assigned', lockMs: 60_000 } });
  const tl = await home.open({ maxWarm: 0 });
  const sessions = new Set<string | null>();
  for (const word of WORDS) {
    const { reply, turn } = await tl.conversation(`task ${word}`).ask(`The codeword is ${word}. ${WHICH_CODEWORDS}`);
    expect(codewordsIn(reply)).toEqual([word]);
    sessions.add(turn.sessionId);
  }
  expect(sessions.size).toBe(10);
  expect(sessions).not.toContain(null);
});

test('tasks that run at the same time have separate sessions', async () => {
  await using home = new Home({ claude: { ids: 'assigned', chunkMs: 5 } });
  const tl = await home.open();
  const words = WORDS.slice(0, 4);
  const answers = await Promise.all(
    words.map((word) => tl.conversation(word).ask(`The codeword is ${word}. ${WHICH_CODEWORDS}`)),
  );
  expect(answers.map(({ reply }) => codewordsIn(reply))).toEqual(words.map((word) => [word]));
  expect(new Set(answers.map(({ turn }) => turn.sessionId)).size).toBe(4);
});

test('a session that we name is stored before the agent opens it', async () => {
  await using home = new Home({ claude: { ids: 'assigned' } });
  const opens: { id: string; stored: number }[] = [];
  const engine = await home.engine({
    agent: (agent) => ({
      ...agent,
      open(request) {
        const id = request.how.kind === 'new' ? (request.how.id ?? '') : '';
        opens.push({ id, stored: home.query('SELECT no FROM sessions WHERE id = ?', id).length });
        return agent.open(request);
      },
    }),
  });
  await engine.ensure({ key: 'task' });
  const { turn } = await run(engine, 'task', 'Hello.');
  expect(opens).toEqual([{ id: turn.sessionId, stored: 1 }]);
  const kinds = (await allEvents(engine, 'task')).map(({ kind }) => kind);
  expect(kinds.indexOf('session.opened')).toBeGreaterThan(0);
  expect(kinds.indexOf('session.opened')).toBeLessThan(kinds.indexOf('turn.sent'));
});

test('another process sees the session while its agent is still starting', async () => {
  await using home = new Home({ claude: { ids: 'assigned', startMs: 60_000 } });
  const [tl, other] = await Promise.all([home.open(), home.host()]);
  await tl.engine.ensure({ key: 'task' });
  const { turn } = await tl.engine.submit('task', 'Hello.');
  await until('the session is stored', async () => (await other.engine.sessions('task')).length === 1);
  expect(await other.engine.sessions('task')).toMatchObject([{ origin: 'new', watermark: 0, turns: 0 }]);
  expect(storedSessions(home)).toMatchObject([{ process: null }]);
  expect((await other.engine.turn(turn.id)).sent).toBeNull();
  await other.engine.cancel(turn.id);
  expect(await ended(tl.engine, turn)).toMatchObject({ state: 'cancelled', sent: null });
});

test('a session named for a turn overrides the setting that starts every turn in a fresh session', async () => {
  await using home = new Home({ claude: { ids: 'assigned' } });
  const tl = await home.open();
  const task = tl.conversation('task', { restore: { policy: 'off' } });
  const first = await task.ask('The codeword is amber.');
  const fresh = await task.ask(WHICH_CODEWORDS);
  expect(codewordsIn(fresh.reply)).toEqual([]);
  expect(fresh.turn.sessionId).not.toBe(first.turn.sessionId);
  const named = await task.ask(WHICH_CODEWORDS, { session: first.turn.sessionId ?? '' });
  expect(codewordsIn(named.reply)).toEqual(['amber']);
  expect(named.turn.sessionId).toBe(first.turn.sessionId);
  expect(named.receipt).toMatchObject({ rung: 'resume', proof: 'proved' });
});

test('a session that cannot be used is refused with the reason, and nothing is sent', async () => {
  await using home = new Home({ claude: { ids: 'assigned' } });
  const tl = await home.open();
  const task = tl.conversation('task');
  await task.ask('The codeword is amber.');
  await refusedWith(
    'refused',
    task.ask(WHICH_CODEWORDS, { session: 'no-such-session' }),
    /no-such-session.*has no such session/,
  );
  const { turns } = await task.show();
  expect(turns[1]).toMatchObject({ state: 'failed', sent: null, sessionId: null });
  expect(codewordsIn((await task.ask(WHICH_CODEWORDS)).reply)).toEqual(['amber']);
});

test('a prompt that names the session of another task is refused', async () => {
  await using home = new Home({ claude: { ids: 'assigned' } });
  const tl = await home.open();
  const { turn } = await tl.conversation('one').ask('The codeword is amber.');
  const session = turn.sessionId ?? '';
  await refusedWith('refused', tl.conversation('two').ask(WHICH_CODEWORDS, { session }), /in use elsewhere/);
});

test('tasks of a milestone share its conversation: the third has the codewords of the first two', async () => {
  await using home = new Home({ claude: { ids: 'assigned' } });
  const tl = await home.open();
  for (const word of ['first', 'second']) await tl.conversation('milestone').ask(`The codeword is ${word}.`);
  await tl.conversation('aside').ask('The codeword is aside.');
  const third = await tl.conversation('milestone').ask(WHICH_CODEWORDS);
  expect(codewordsIn(third.reply)).toEqual(['first', 'second']);
  expect(await tl.conversation('milestone').summary()).toMatchObject({ contexts: 3, sessions: 1 });
});

/** Waits ten minutes for a lock: until the test removes it. */
const LONG_WAIT = { firstMs: 20, longestMs: 100, totalMs: 600_000 };

/** The file that locks a session of the scripted agent. */
function lockOf(home: Home, sandbox: string, { sessionId }: Pick<Turn, 'sessionId'>): string {
  return join(home.sandboxes, sandbox, 'state', 'scripted', `${sessionId}.jsonl.lock`);
}

test('a retry waits until the session is unlocked, and the receipt counts the waits', async () => {
  await using home = new Home({ claude: { ids: 'assigned', lockMs: 600_000 } });
  const tl = await home.open({ maxWarm: 0, lock: LONG_WAIT });
  const { id: sandbox } = await tl.engine.ensure({ key: 'task' });
  const failed = await run(tl.engine, 'task', 'The codeword is amber.\n/fail agent_failed');
  expect(failed.turn.state).toBe('failed');
  await untilReleased(tl.engine, 'task'); // a retry that comes earlier would use the session while it is open
  const { turn } = await tl.engine.retry(failed.turn.id);
  const locked = await event(tl.engine, 'task', 'session.locked', { turn: turn.id });
  expect(locked.payload).toMatchObject({ sessionId: failed.turn.sessionId, waits: 1, ms: 20 });
  rmSync(lockOf(home, sandbox, failed.turn));
  await ended(tl.engine, turn);
  const { receipt } = await tl.engine.answerOf(turn.id);
  expect(receipt).toMatchObject({ rung: 'resume', sessionId: failed.turn.sessionId, unsettled: true });
  expect(receipt?.lockWaits.count).toBeGreaterThan(0);
  expect(receipt?.lockWaits.ms).toBeGreaterThanOrEqual(20);
});

test('a prompt that waited for the lock of an open session is delivered once, without history', async () => {
  await using home = new Home({ claude: { ids: 'assigned', lockMs: 1 } });
  const tl = await home.open({ lock: LONG_WAIT });
  const { id: sandbox } = await tl.engine.ensure({ key: 'task' });
  const first = await run(tl.engine, 'task', 'The codeword is amber.');
  const lock = lockOf(home, sandbox, first.turn);
  writeFileSync(lock, String(Date.now() + 600_000));
  const { turn } = await tl.engine.submit('task', 'How many messages were you given?');
  await event(tl.engine, 'task', 'turn.retrying', { turn: turn.id });
  rmSync(lock);
  await ended(tl.engine, turn);
  const { reply, receipt } = await tl.engine.answerOf(turn.id);
  expect(reply).toContain('given 2 prompts; no conversation record');
  expect(receipt).toMatchObject({ rung: 'live', unsettled: false, delivered: 0, carried: 1 });
  expect(receipt?.lockWaits.count).toBeGreaterThan(0);
});

test.each([
  ['reopened', 0],
  ['live', 8],
])('a %s session that is locked for longer than we wait fails the turn with "session_locked"', async (_, maxWarm) => {
  await using home = new Home({ claude: { ids: 'assigned', lockMs: 60_000 } });
  const tl = await home.open({ maxWarm, lock: { firstMs: 20, longestMs: 40, totalMs: 100 } });
  const task = tl.conversation('task');
  await task.ask('The codeword is amber.');
  await refusedWith('session_locked', task.ask(WHICH_CODEWORDS));
  const { turns, receipts } = await task.show();
  expect(turns.at(-1)).toMatchObject({ state: 'failed', failure: { code: 'session_locked' } });
  expect(receipts.at(-1)?.lockWaits).toEqual({ count: 3, ms: 100 });
});

test('usage is counted for the session in which it was spent', async () => {
  await using home = new Home({ claude: { ids: 'assigned' } });
  const tl = await home.open();
  for (const [i, word] of WORDS.slice(0, 3).entries())
    await tl.conversation(word).ask(`/usage ${100 * (i + 1)} ${i + 1}`);
  await tl.conversation('word-1').ask('/usage 11 22');
  const usages = await Promise.all(
    WORDS.slice(0, 3).map(async (word) => (await tl.conversation(word).show()).sessions.map(({ usage }) => usage)),
  );
  expect(usages).toMatchObject([
    [{ inputTokens: 111, outputTokens: 23, modelCalls: 2 }],
    [{ inputTokens: 200, outputTokens: 2, modelCalls: 1 }],
    [{ inputTokens: 300, outputTokens: 3, modelCalls: 1 }],
  ]);
});
