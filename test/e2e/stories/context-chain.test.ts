import { join } from 'node:path';
import { expect, test } from 'vitest';
import { scriptedAgent } from '../../../src/agents/scripted/adapter.ts';
import type { ScriptedOptions } from '../../../src/agents/scripted/options.ts';
import { ask, TestSandboxes } from '../../contracts/agent-sandbox.ts';
import { codewordsIn, directoriesBelow, ended, expectSound, run, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

// Story 1: an agent answers each of five requests under a new session id. A program that used the last id had only the last context.

const WORDS = ['amber', 'birch', 'cobalt', 'dune', 'ember'];
const HOLLOW: Partial<ScriptedOptions> = { ids: 'rotating', hollowRotation: true };

test('a naive loop that sends each request to the session of the last answer has one context of five', async () => {
  const sandboxes = new TestSandboxes();
  try {
    const agent = scriptedAgent({ name: 'claude', options: HOLLOW });
    const sandbox = await sandboxes.sandbox();
    let sessionId: string | null = null;
    let answer = '';
    const ids = new Set<string | null>();
    for (const word of WORDS) {
      const how = sessionId === null ? { kind: 'new' as const, id: null } : { kind: 'resume' as const, id: sessionId };
      const session = await sandboxes.open(agent, sandbox, how);
      answer = (await ask(session, `The codeword is ${word}. ${WHICH_CODEWORDS}`)).reply;
      sessionId = session.id;
      ids.add(sessionId);
      await session.close();
    }
    expect(ids.size).toBe(5);
    expect(codewordsIn(answer)).toEqual(['ember']);
  } finally {
    await sandboxes.dispose();
  }
});

test('a naive loop that keeps the first id has only the first context', async () => {
  const sandboxes = new TestSandboxes();
  try {
    const agent = scriptedAgent({ name: 'claude', options: { ids: 'rotating' } });
    const sandbox = await sandboxes.sandbox();
    const first = await sandboxes.open(agent, sandbox);
    const { id } = first;
    await ask(first, `The codeword is ${WORDS[0]}.`);
    await first.close();
    let answer = '';
    for (const word of WORDS.slice(1)) {
      const session = await sandboxes.open(agent, sandbox, { kind: 'resume', id: id ?? '' });
      answer = (await ask(session, `The codeword is ${word}. ${WHICH_CODEWORDS}`)).reply;
      await session.close();
    }
    expect(codewordsIn(answer)).toEqual(['amber', 'ember']);
  } finally {
    await sandboxes.dispose();
  }
});

async function fiveAtOnce(home: Home, tuning = {}) {
  const tl = await home.open(tuning);
  const chain = tl.conversation('chain');
  const accepted = await Promise.all(
    WORDS.map((word) => chain.send(`The codeword is ${word}. ${WHICH_CODEWORDS}`).accepted),
  );
  for (const { turn } of accepted) expect((await ended(tl.engine, turn)).state).toBe('completed');
  return { tl, chain, view: await chain.show() };
}

test('five requests queued at once are answered in order, each with the context of all before it', async () => {
  await using home = new Home({ claude: { ids: 'rotating' } });
  const { tl, view } = await fiveAtOnce(home);
  expect(view.turns.map((turn) => codewordsIn(turn.reply))).toEqual(WORDS.map((_, i) => WORDS.slice(0, i + 1)));
  expect(view.turns.map((turn) => turn.n)).toEqual([1, 2, 3, 4, 5]);
  await expectSound(tl.engine, 'chain');
});

test('every new id is a rotated session whose parent is the one before, and all five contexts count', async () => {
  await using home = new Home({ claude: { ids: 'rotating' } });
  const { chain, view } = await fiveAtOnce(home);
  const { sessions } = view;
  expect(sessions.map((session) => session.origin)).toEqual(['new', 'rotated', 'rotated', 'rotated', 'rotated']);
  expect(sessions.map((session) => session.parent)).toEqual([null, ...sessions.slice(0, 4).map(({ id }) => id)]);
  expect(view.turns.map((turn) => turn.sessionId)).toEqual(sessions.map((session) => session.id));
  expect(sessions.at(-1)?.watermark).toBe(5);
  expect(view.receipts.map((receipt) => receipt.proof)).toEqual(['proved', 'proved', 'proved', 'proved', 'proved']);
  expect(await chain.summary()).toMatchObject({
    contexts: 5,
    sessions: 5,
    changes: 4,
    open: 0,
    first: { n: 1 },
    last: { n: 5 },
  });
});

test('a session that starts empty under its new id is detected each time, and the whole history is delivered again', async () => {
  await using home = new Home({ claude: HOLLOW });
  const { tl, chain, view } = await fiveAtOnce(home);
  expect(view.turns.map((turn) => codewordsIn(turn.reply))).toEqual(WORDS.map((_, i) => WORDS.slice(0, i + 1)));
  expect((await chain.summary()).contexts).toBe(5);
  const last = view.receipts.at(-1);
  expect(last).toMatchObject({ turn: 5, rung: 'transcript', carried: 4, delivered: 4, dropped: 0, proof: 'proved' });
  expect(last?.tried).toMatchObject([{ rung: 'live' }]);
  expect(view.sessions.filter((session) => session.origin === 'rotated').map(({ state }) => state)).toEqual(
    WORDS.slice(1).map(() => 'lost'),
  );
  await expectSound(tl.engine, 'chain');
});

test('after every restart the next request resumes the chain, although every id is new', async () => {
  await using home = new Home({ claude: { ids: 'rotating' } });
  for (const [i, word] of WORDS.entries()) {
    const tl = await home.open();
    const { reply, receipt } = await tl.conversation('chain').ask(`The codeword is ${word}. ${WHICH_CODEWORDS}`);
    expect(codewordsIn(reply)).toEqual(WORDS.slice(0, i + 1));
    expect(receipt.rung).toBe(i === 0 ? 'new' : 'resume');
    await tl.close();
  }
  const tl = await home.open();
  expect(await tl.conversation('chain').summary()).toMatchObject({ contexts: 5, sessions: 5 });
});

test('the sandbox path stays root/id/work however often it is opened, and is never nested', async () => {
  await using home = new Home({ claude: { ids: 'rotating' } });
  const work: string[] = [];
  let sandbox = '';
  for (let i = 0; i < 3; i += 1) {
    const tl = await home.open();
    ({ id: sandbox } = await tl.conversation('chain').ensure());
    const { reply } = await run(tl.engine, 'chain', 'Which directory are you in?');
    work.push(reply);
    await tl.close();
  }
  expect(new Set(work)).toEqual(new Set([`I am in ${join(home.sandboxes, sandbox, 'work')}.`]));
  expect(directoriesBelow(home.sandboxes).toSorted()).toEqual(
    [sandbox, join(sandbox, 'state'), join(sandbox, 'state', 'scripted'), join(sandbox, 'work')].toSorted(),
  );
});
