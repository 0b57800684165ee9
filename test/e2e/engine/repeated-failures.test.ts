// Turns that fail one after the other: the context of a session does not grow with every failure.
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
  /** All prompts of a session, from the storage of the agent. */
  const context = (session: string | null): string =>
    readFileSync(join(home.sandboxes, sandbox, 'state', 'scripted', `${session}.jsonl`), 'utf8')
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as { role: string; text: string }]))
      .flatMap(({ role, text }) => (role === 'user' ? [text] : []))
      .join('\n');
  return { engine, context };
}

const codeword = (word: string) => `The codeword is ${word}.`;

/** How often the text has the prompt with this codeword. Answers of the agent, which repeat it, do not count. */
const occurrences = (text: string, word: string) =>
  text.replaceAll(`Noted: ${codeword(word)}`, '').split(codeword(word)).length - 1;

/** Each function runs a turn with a codeword that ends as its name says. */
const RUN_TO_END = {
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

test.each(Object.entries(RUN_TO_END))(
  'when five turns in a row end as %s, no session is told a turn more than three times in an attempt',
  async (end, runToEnd) => {
    await using home = new Home();
    const { engine, context } = await chat(home);
    await run(engine, 'chat', codeword('amber'));
    const contexts: string[] = [];
    let attempts = 1;
    for (const word of WORDS) {
      const { turn } = await runToEnd(engine, word);
      expect(turn.state).toBe(end.split(',')[0]);
      contexts.push(context(turn.sessionId));
      attempts = Math.max(attempts, turn.attempt);
    }
    const { turn, reply, receipt } = await run(engine, 'chat', WHICH_CODEWORDS);
    contexts.push(context(turn.sessionId));
    expect(codewordsIn(reply)).toEqual(['amber', ...WORDS]);
    expect(receipt).toMatchObject({ carried: 6, dropped: 0 });
    const counts = contexts.map((prompts) => ['amber', ...WORDS].map((word) => occurrences(prompts, word)));
    expect(Math.max(...counts.flat()), JSON.stringify(counts)).toBeLessThanOrEqual(3 * attempts);
    await expectSound(engine, 'chat');
  },
);

test('after three failed turns the session is replaced, not before, and the receipt and the lineage say why', async () => {
  await using home = new Home();
  const { engine } = await chat(home);
  const { turn: first } = await run(engine, 'chat', codeword('amber'));
  for (const [i, word] of WORDS.slice(0, 3).entries()) {
    const { receipt, turn } = await RUN_TO_END.failed(engine, word);
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

test('a rebuilt session whose first prompts fail is not told the history twice', async () => {
  await using home = new Home();
  const { engine, context } = await chat(home);
  for (const word of WORDS) await run(engine, 'chat', codeword(word));
  const inNewSession = { restore: { rebuild: true, rung: 'transcript' } } as const;
  const rebuilt = await run(engine, 'chat', '/fail agent_failed', inNewSession);
  const second = await run(engine, 'chat', '/fail agent_failed 99');
  expect(second.turn).toMatchObject({ state: 'failed', attempt: 2 });
  const last = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(codewordsIn(last.reply)).toEqual([...WORDS]);
  for (const { turn } of [rebuilt, second, last]) {
    expect(WORDS.map((word) => occurrences(context(turn.sessionId), word))).toEqual(WORDS.map(() => 1));
  }
});

test('an agent that keeps sessions only in its process gets a new session with the history', async () => {
  await using home = new Home({ scripted: { memory: 'process' } });
  const { engine } = await chat(home);
  await run(engine, 'chat', codeword('amber'));
  for (const word of WORDS) await RUN_TO_END.failed(engine, word);
  const { reply, receipt } = await run(engine, 'chat', 'How many messages?');
  expect(reply).toBe('I was given 1 prompts; a conversation record was delivered.');
  expect(receipt).toMatchObject({ rung: 'transcript', carried: 6, delivered: 6 });
  expect(storedSessions(home).filter(({ process }) => process !== null)).toHaveLength(1);
});

test('turns that another agent has answered since do not count as repeated: after one cancelled turn the session is kept', async () => {
  await using home = new Home({ scripted: {}, other: {} });
  const { engine } = await chat(home);
  const { turn: first } = await run(engine, 'chat', codeword('amber'), { agent: 'scripted' });
  await RUN_TO_END.cancelled(engine, 'birch');
  for (const word of ['cedar', 'dogwood', 'elder']) await run(engine, 'chat', codeword(word), { agent: 'other' });
  const { turn, receipt } = await run(engine, 'chat', WHICH_CODEWORDS, { agent: 'scripted' });
  expect(receipt).toMatchObject({ delivered: 4, unsettled: true, tried: [] });
  expect(turn.sessionId).toBe(first.sessionId);
});

test('a session or a rung that the caller names is used also after three failed turns', async () => {
  for (const options of [(session: string) => ({ session }), () => ({ restore: { rung: 'resume' } as const })]) {
    await using home = new Home();
    const { engine } = await chat(home);
    const { turn: first } = await run(engine, 'chat', codeword('amber'));
    for (const word of WORDS.slice(0, 3)) await RUN_TO_END.failed(engine, word);
    const { turn, receipt } = await run(engine, 'chat', WHICH_CODEWORDS, options(first.sessionId ?? ''));
    expect(receipt).toMatchObject({ delivered: 3, unsettled: true, tried: [] });
    expect(turn.sessionId).toBe(first.sessionId);
  }
});
