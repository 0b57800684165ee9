import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { scriptedAgent } from '../../../src/agents/scripted/adapter.ts';
import type { ScriptedOptions } from '../../../src/agents/scripted/options.ts';
import type { Agent, AgentEvent, AgentSession } from '../../../src/ports/agent.ts';
import { ask, TestSandboxes } from '../../contracts/agent-sandbox.ts';
import { changedOpen, changedPrompt } from '../support/changed-agent.ts';
import {
  codewordsIn,
  effects,
  expectSound,
  refusedWith,
  run,
  until,
  WHICH_CODEWORDS,
} from '../support/conversations.ts';
import { Home, ONE_STORAGE } from '../support/home.ts';

// What an agent reports about a session is no proof: its position must be the one that Throughline recorded.

/** Makes a conversation with one codeword, in an engine that is closed. Returns the id of its session. */
async function makeTurn(home: Home, word = 'amber') {
  const tl = await home.open();
  const { turn } = await tl.conversation('chat').ask(`The codeword is ${word}.`);
  await tl.close();
  return turn.sessionId ?? expect.unreachable();
}

test.each([
  ['live', false],
  ['resume', true],
])(
  'a session that somebody else has used is diverged: a %s one is never used again, and the receipt says so',
  async (rung, restart) => {
    const sandboxes = new TestSandboxes();
    try {
      const dir = join(sandboxes.root, 'native');
      await using home = new Home({ a: { dir } });
      let tl = await home.open();
      const { turn } = await tl.conversation('chat').ask('The codeword is amber.');
      const id = turn.sessionId ?? '';
      if (restart) await tl.close();
      const foreign = await sandboxes.open(scriptedAgent({ name: 'a', options: { dir } }), await sandboxes.sandbox(), {
        kind: 'resume',
        id,
      });
      await ask(foreign, 'The codeword is foreign.');
      if (restart) tl = await home.open();
      const { reply, receipt, turn: next } = await tl.conversation('chat').ask(WHICH_CODEWORDS);
      expect(codewordsIn(reply)).toEqual(['amber']);
      expect(receipt).toMatchObject({ rung: 'transcript', carried: 1, dropped: 0 });
      expect(receipt.tried[0]).toMatchObject({
        rung,
        sessionId: id,
        failure: expect.stringContaining('somebody else'),
      });
      expect(next.sessionId).not.toBe(id);
      const { sessions } = await tl.conversation('chat').show();
      expect(sessions).toMatchObject([{ id, state: 'diverged' }, { parent: id }]);
      await refusedWith('refused', tl.conversation('chat').ask(WHICH_CODEWORDS, { session: id }), /diverged/);
    } finally {
      await sandboxes.dispose();
    }
  },
);

test('a hollow resume is detected after sending, and the prompt is sent again by the next rung', async () => {
  await using home = new Home({ a: { resume: 'hollow' } }); // it resumes the session without its context
  const id = await makeTurn(home);
  const tl = await home.open();
  const { reply, receipt, turn } = await tl.conversation('chat').ask(WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(turn.attempt).toBe(2);
  expect(receipt).toMatchObject({
    attempt: 2,
    rung: 'transcript',
    proof: 'proved',
    tried: [{ rung: 'resume', sessionId: id }],
  });
  const { receipts, sessions } = await tl.conversation('chat').show();
  expect(receipts).toMatchObject([{ turn: 1 }, { turn: 2, attempt: 1, rung: 'resume' }, { turn: 2, attempt: 2 }]);
  expect(sessions[0]).toMatchObject({ id, state: 'lost' });
  await expectSound(tl.engine, 'chat');
});

/** The agent, whose storage is read late: the proof comes only after the first tool has begun and had its effect. */
function withLateProof(agent: Agent, effect: () => Promise<void>): Agent {
  const slow = (session: AgentSession) =>
    changedPrompt(session, async function* (request) {
      let held: AgentEvent | null = null;
      for await (const one of session.prompt(request)) {
        const begun = one.type === 'update' && one.update.sessionUpdate === 'tool_call';
        if (held && begun) await effect();
        if (one.type === 'proof') held = one;
        else if (held && (begun || one.type === 'ended')) yield* begun ? [one, held] : [held, one];
        else yield one;
        if (begun) held = null;
      }
    });
  return changedOpen(agent, slow, ({ how }) => how.kind === 'resume');
}

test('a hollow resume in which a tool has begun is interrupted, and the tool does not run twice', async () => {
  await using home = new Home({ a: { resume: 'hollow' } });
  await makeTurn(home);
  let log = '';
  const effect = () => until('the tool has had its effect', () => effects(log) === 1);
  const engine = await home.engine({ agent: (agent) => withLateProof(agent, effect) });
  log = join(home.sandboxes, (await engine.conversation('chat')).id, 'work', 'effects.log');
  const { turn, receipt } = await run(engine, 'chat', '/slow-tool write effects.log 60000');
  expect(effects(log)).toBe(1);
  expect(turn).toMatchObject({ state: 'interrupted', attempt: 1, failure: { code: 'context_refuted' } });
  expect(receipt).toMatchObject({ rung: 'resume', after: 'refuted', proof: 'refuted' });
  const [record] = (await engine.export('chat')).records.slice(-1);
  // Its end is unknown, unless the agent reported the tool as failed while it was being stopped.
  expect(record?.parts).toMatchObject([
    { type: 'tool', name: 'write', status: expect.stringMatching(/unknown|failed/) },
  ]);
  expect((await engine.sessions('chat'))[0]).toMatchObject({ state: 'lost' });
  const next = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(next.reply)).toEqual(['amber']);
  expect(next.receipt).toMatchObject({ rung: 'transcript', tried: [], delivered: 2 });
  expect(effects(log)).toBe(1);
});

test('a session that is tied to a directory is found again from the same one', async () => {
  await using home = new Home({ a: { tied: true } });
  const cwd = join(home.path, 'project');
  mkdirSync(cwd);
  for (const word of ['amber', 'birch']) {
    const tl = await home.open();
    await tl.conversation('chat', { cwd }).ask(`The codeword is ${word}.`);
    await tl.close();
  }
  const tl = await home.open();
  const { reply, receipt } = await tl.conversation('chat').ask(WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber', 'birch']);
  expect(receipt).toMatchObject({ rung: 'resume', proof: 'proved' });
});

test('a session that is tied to a directory is not tried in a fork that works in another', async () => {
  await using home = new Home({ a: { tied: true, dir: '../../tied' } });
  const [one, two] = [join(home.path, 'one'), join(home.path, 'two')];
  for (const path of [one, two]) mkdirSync(path);
  const tl = await home.open();
  const { turn } = await tl.conversation('chat', { cwd: one }).ask('The codeword is amber.');
  const fork = await tl.conversation('chat').fork({ cwd: two, key: 'fork' });
  const { reply, receipt } = await fork.ask(WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(receipt).toMatchObject({ rung: 'transcript', tried: [] });
  expect(receipt.sessionId).not.toBe(turn.sessionId);
});

const UNPROVED: Partial<ScriptedOptions> = { position: false };

test('with the policy "required" a session that nothing proves is not resumed, and a new one is told the history', async () => {
  await using home = new Home({ a: UNPROVED });
  await makeTurn(home);
  const tl = await home.open();
  const { reply, receipt } = await tl.conversation('chat').ask(WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(receipt).toMatchObject({ rung: 'transcript', proof: 'counted' });
});

test('with the policy "auto" a session that nothing proves is resumed, and the receipt says so', async () => {
  await using home = new Home({ a: UNPROVED });
  await makeTurn(home);
  const tl = await home.open();
  const { reply, receipt } = await tl.conversation('chat').ask(WHICH_CODEWORDS, { restore: { policy: 'auto' } });
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(receipt).toMatchObject({ rung: 'resume', proof: 'none', carried: 1 });
});

test('with the policy "auto" a turn starts fresh if nothing can be restored, and its receipt says what is missing and why', async () => {
  await using home = new Home({ a: { memory: 'process' } });
  await makeTurn(home);
  const tl = await home.open();
  const { reply, receipt } = await tl
    .conversation('chat')
    .ask(WHICH_CODEWORDS, { restore: { policy: 'auto', budgetTokens: 1 } });
  expect(codewordsIn(reply)).toEqual([]);
  expect(receipt).toMatchObject({
    rung: 'fresh',
    carried: 0,
    dropped: 1,
    proof: 'none',
    tried: [{ rung: 'transcript' }],
  });
});

test('with the policy "required" a turn fails if nothing can be restored, and a later turn may still get the whole history', async () => {
  await using home = new Home({ a: { memory: 'process' } });
  await makeTurn(home);
  const tl = await home.open();
  const chat = tl.conversation('chat');
  await refusedWith(
    'restore_failed',
    chat.ask(WHICH_CODEWORDS, { restore: { budgetTokens: 1 } }),
    /could not be restored/,
  );
  expect(codewordsIn((await chat.ask(WHICH_CODEWORDS)).reply)).toEqual(['amber']);
});

test('with the policy "off" a turn starts fresh and its receipt says so, and a later turn gets the whole history', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  await chat.ask('The codeword is amber.');
  const off = await chat.ask(`The codeword is birch. ${WHICH_CODEWORDS}`, { restore: { policy: 'off' } });
  expect(codewordsIn(off.reply)).toEqual(['birch']);
  expect(off.receipt).toMatchObject({ rung: 'fresh', carried: 0, dropped: 1, proof: 'none' });
  const later = await chat.ask(WHICH_CODEWORDS);
  expect(codewordsIn(later.reply)).toEqual(['amber', 'birch']);
  expect(later.receipt.dropped).toBe(0);
});

test.each([
  ['rehydrate', { rebuild: true }, /rung "rehydrate" that was asked for is not possible/],
  ['live', {}, /rung "live" that was asked for is not possible/],
] as const)('the rung %s that is asked for and not possible is refused with the reason', async (rung, more, why) => {
  await using home = new Home();
  await makeTurn(home);
  const tl = await home.open();
  await refusedWith(
    'restore_failed',
    tl.conversation('chat').ask(WHICH_CODEWORDS, { restore: { rung, ...more } }),
    why,
  );
  expect((await tl.conversation('chat').show()).turns.at(-1)).toMatchObject({ state: 'failed', sent: null });
});

test('the rung that the caller names for a rebuild is used, although a better one is possible', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat');
  await chat.ask('The codeword is amber.');
  for (const rung of ['transcript', 'replay'] as const) {
    const { reply, receipt } = await chat.ask(WHICH_CODEWORDS, { restore: { rebuild: true, rung } });
    expect(codewordsIn(reply)).toEqual(['amber']);
    expect(receipt.rung).toBe(rung);
  }
});

/** Makes an agent answer every prompt under the id of this session. */
function answeringAs(id: () => string | null): (agent: Agent) => Agent {
  const forge = (session: AgentSession) =>
    changedPrompt(session, async function* (request) {
      const named = id();
      if (named !== null) yield { type: 'session', id: named };
      yield* session.prompt(request);
    });
  return (agent) => changedOpen(agent, forge, () => true);
}

test('a turn fails if its agent answers under the id of a session of another conversation', async () => {
  await using home = new Home({ scripted: { dir: ONE_STORAGE } });
  let forged: string | null = null;
  const engine = await home.engine({ agent: answeringAs(() => forged) });
  for (const key of ['one', 'two']) await engine.ensure({ key });
  const one = await run(engine, 'one', 'The codeword is amber.');
  await run(engine, 'two', 'The codeword is birch.');
  forged = one.turn.sessionId;
  const { turn } = await run(engine, 'two', WHICH_CODEWORDS);
  expect(turn).toMatchObject({ state: 'failed', failure: { code: 'refused' } });
  expect(turn.failure?.message).toContain('belongs to another conversation');
  forged = null;
  expect(codewordsIn((await run(engine, 'two', WHICH_CODEWORDS)).reply)).toEqual(['birch']);
  expect(codewordsIn((await run(engine, 'one', WHICH_CODEWORDS)).reply)).toEqual(['amber']);
});
