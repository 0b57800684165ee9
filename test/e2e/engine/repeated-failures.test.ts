// Turns that fail one after the other: what a session is told of them does not grow with every try.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Engine } from '../../../src/ports/engine.ts';
import { allEvents, codewordsIn, ended, event, expectSound, run, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { storedSessions } from '../support/stored.ts';

const WORDS = ['birch', 'cedar', 'dogwood', 'elder', 'fir'] as const;

async function chat(home: Home) {
  const { engine } = await home.open({ retryMs: 10 });
  const { id: sandbox } = await engine.ensure({ key: 'chat' });
  /** All that a session was told, as the agent has it in its storage. */
  const context = (session: string | null): string =>
    readFileSync(join(home.sandboxes, sandbox, 'state', 'scripted', `${session}.jsonl`), 'utf8')
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as { role: string; text: string }]))
      .flatMap(({ role, text }) => (role === 'user' ? [text] : []))
      .join('\n');
  return { engine, context };
}

const codeword = (word: string) => `The codeword is ${word}.`;

/** How often the person's words are there; the agent's answer has them, too. */
const times = (text: string, word: string) =>
  text.replaceAll(`Noted: ${codeword(word)}`, '').split(codeword(word)).length - 1;

const WAYS = {
  failed: async (engine: Engine, word: string) => run(engine, 'chat', `${codeword(word)}\n/fail agent_failed`),
  'failed, tried twice': async (engine: Engine, word: string) =>
    run(engine, 'chat', `${codeword(word)}\n/fail agent_failed 99`),
  interrupted: async (engine: Engine, word: string) => run(engine, 'chat', `${codeword(word)}\n/exit 1`),
  cancelled: async (engine: Engine, word: string) => {
    const { turn } = await engine.submit('chat', `${codeword(word)}\n/say beginning\n/hang`);
    await event(engine, 'chat', 'turn.update', { turn: turn.id });
    await engine.cancel(turn.id);
    await ended(engine, turn);
    return engine.answerOf(turn.id);
  },
};

test.each(Object.entries(WAYS))(
  'five turns in a row %s: no attempt has told a turn to a session more than three times',
  async (way, lose) => {
    await using home = new Home();
    const { engine, context } = await chat(home);
    await run(engine, 'chat', codeword('amber'));
    const contexts: string[] = [];
    let attempts = 1;
    for (const word of WORDS) {
      const { turn } = await lose(engine, word);
      expect(turn.state).toBe(way.split(',')[0]);
      contexts.push(context(turn.sessionId));
      attempts = Math.max(attempts, turn.attempt);
    }
    const { turn, reply, receipt } = await run(engine, 'chat', WHICH_CODEWORDS);
    contexts.push(context(turn.sessionId));
    expect(codewordsIn(reply)).toEqual(['amber', ...WORDS]);
    expect(receipt).toMatchObject({ carried: 6, dropped: 0 });
    const counts = contexts.map((told) => ['amber', ...WORDS].map((word) => times(told, word)));
    expect(Math.max(...counts.flat()), JSON.stringify(counts)).toBeLessThanOrEqual(3 * attempts);
    await expectSound(engine, 'chat');
  },
);

test('one or two do not cost the session; the third does, and the receipt and the lineage say why', async () => {
  await using home = new Home();
  const { engine } = await chat(home);
  const { turn: first } = await run(engine, 'chat', codeword('amber'));
  for (const [i, word] of WORDS.slice(0, 3).entries()) {
    const { receipt, turn } = await WAYS.failed(engine, word);
    expect(receipt).toMatchObject({ delivered: i, tried: [] });
    expect(turn.sessionId).toBe(first.sessionId);
  }
  const { receipt, turn } = await run(engine, 'chat', WHICH_CODEWORDS);
  const failure = 'it would be told 3 turns that it has been told before';
  expect(receipt).toMatchObject({
    rung: 'transcript',
    carried: 4,
    delivered: 4,
    unsettled: false,
    tried: [{ rung: 'resume', sessionId: first.sessionId, failure }],
  });
  expect(await engine.sessions('chat')).toMatchObject([
    { id: turn.sessionId, state: 'live', watermark: 5 },
    { id: first.sessionId, state: 'closed', watermark: 1 },
  ]);
  expect(storedSessions(home)[1]?.process).toBeNull();
  const closed = (await allEvents(engine, 'chat')).findLast(
    (one) => one.kind === 'session.changed' && one.payload.state === 'closed',
  );
  expect(closed?.payload).toMatchObject({ reason: failure });
});

test('a session that was rebuilt, and whose first prompts fail, is not told the history on top of it', async () => {
  await using home = new Home();
  const { engine, context } = await chat(home);
  for (const word of WORDS) await run(engine, 'chat', codeword(word));
  const anew = { restore: { rung: 'transcript' } } as const;
  const rebuilt = await run(engine, 'chat', '/fail agent_failed', anew);
  const second = await run(engine, 'chat', '/fail agent_failed 99');
  expect(second.turn).toMatchObject({ state: 'failed', attempt: 2 });
  const last = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(last.reply)).toEqual([...WORDS]);
  for (const { turn } of [rebuilt, second, last]) {
    expect(WORDS.map((word) => times(context(turn.sessionId), word))).toEqual(WORDS.map(() => 1));
  }
});

test('an agent that keeps nothing without its process begins another with the history', async () => {
  await using home = new Home({ scripted: { memory: 'process' } });
  const { engine } = await chat(home);
  await run(engine, 'chat', codeword('amber'));
  for (const word of WORDS) await WAYS.failed(engine, word);
  const { reply, receipt } = await run(engine, 'chat', 'How many messages?');
  expect(reply).toBe('I was given 1 prompts; a conversation record was delivered.');
  expect(receipt).toMatchObject({ rung: 'transcript', carried: 6, delivered: 6 });
  expect(storedSessions(home).filter(({ process }) => process !== null)).toHaveLength(1);
});

test('what another agent has answered since is new to the session: one cancelled turn does not cost it', async () => {
  await using home = new Home({ scripted: {}, other: {} });
  const { engine } = await chat(home);
  const { turn: first } = await run(engine, 'chat', codeword('amber'), { agent: 'scripted' });
  await WAYS.cancelled(engine, 'birch');
  for (const word of ['cedar', 'dogwood', 'elder']) await run(engine, 'chat', codeword(word), { agent: 'other' });
  const { turn, receipt } = await run(engine, 'chat', WHICH_CODEWORDS, { agent: 'scripted' });
  expect(receipt).toMatchObject({ delivered: 4, unsettled: true, tried: [] });
  expect(turn.sessionId).toBe(first.sessionId);
});

test('a session that the caller names, or a rung that is asked for, is used all the same', async () => {
  for (const options of [(session: string) => ({ session }), () => ({ restore: { rung: 'resume' } as const })]) {
    await using home = new Home();
    const { engine } = await chat(home);
    const { turn: first } = await run(engine, 'chat', codeword('amber'));
    for (const word of WORDS.slice(0, 3)) await WAYS.failed(engine, word);
    const { turn, receipt } = await run(engine, 'chat', WHICH_CODEWORDS, options(first.sessionId ?? ''));
    expect(receipt).toMatchObject({ delivered: 3, unsettled: true, tried: [] });
    expect(turn.sessionId).toBe(first.sessionId);
  }
});
