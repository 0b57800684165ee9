// A rung is for the restores that are needed. A rebuild replaces the session now.
import { describe, expect, test } from 'vitest';
import type { OpenOptions, Throughline } from '../../../src/index.ts';
import { codewordsIn, refusedWith, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const WORDS = ['amber', 'birch', 'cedar', 'dogwood'];
const REPLAY = { rung: 'replay' } as const;

/** The rungs, the sessions and the model calls for restoring alone, of all receipts of the conversation. */
async function restoresOf(tl: Throughline) {
  const { receipts, sessions } = await tl.conversation('chat').show();
  return {
    rungs: receipts.map(({ rung }) => rung),
    calls: receipts.reduce((sum, { modelCalls }) => sum + modelCalls, 0),
    sessions: sessions.length,
  };
}

const LIVE = ['new', 'live', 'live', 'live'];

describe('a rung that is preferred applies when a restore is needed', () => {
  test.each<[name: string, settings: object, conversation: object, turn: object]>([
    ['in the settings', { restore: REPLAY }, {}, {}],
    ['by the conversation', {}, { restore: REPLAY }, {}],
    ['by the turn', {}, {}, { restore: REPLAY }],
  ])(
    '%s: four prompts to a living session are one session and no call for restoring',
    async (_, settings, conversation, turn) => {
      await using home = new Home();
      const tl = await home.open({}, home.with(settings));
      const chat = tl.conversation('chat', conversation);
      for (const word of WORDS) await chat.ask(`The codeword is ${word}.`, turn);
      expect(await restoresOf(tl)).toEqual({ rungs: LIVE, calls: 0, sessions: 1 });
    },
  );

  test('a session that its agent can open again is resumed: a process for each prompt replays nothing', async () => {
    await using home = new Home();
    const replay: OpenOptions = home.with({ restore: REPLAY });
    for (const word of WORDS) {
      const tl = await home.open({}, replay);
      await tl.conversation('chat').ask(`The codeword is ${word}.`);
      await tl.close();
    }
    const tl = await home.open({}, replay);
    expect(await restoresOf(tl)).toEqual({ rungs: ['new', 'resume', 'resume', 'resume'], calls: 0, sessions: 1 });
  });

  test('a session that is gone is restored by the preferred rung and no other', async () => {
    await using home = new Home({ scripted: { memory: 'process' } });
    const before = await home.open();
    for (const word of WORDS) await before.conversation('chat').ask(`The codeword is ${word}.`);
    await before.close();
    const tl = await home.open({}, home.with({ restore: REPLAY, agents: FORGETFUL }));
    const { reply, receipt } = await tl.conversation('chat').ask(WHICH_CODEWORDS);
    expect(codewordsIn(reply)).toEqual(WORDS);
    expect(receipt).toMatchObject({ rung: 'replay', modelCalls: 4 });
    expect((await tl.conversation('chat').ask('Hello.')).receipt).toMatchObject({ rung: 'live', modelCalls: 0 });
  });

  test('a warm-up and the prompt after it replay once', async () => {
    await using home = new Home({ scripted: { memory: 'process' } });
    const before = await home.open();
    for (const word of WORDS) await before.conversation('chat').ask(`The codeword is ${word}.`);
    await before.close();
    const tl = await home.open({}, home.with({ restore: REPLAY, agents: FORGETFUL }));
    const chat = tl.conversation('chat');
    expect(await chat.warm()).toMatchObject({ rung: 'replay', modelCalls: 4 });
    expect(await chat.warm()).toMatchObject({ rung: 'live', modelCalls: 0 });
    expect((await chat.ask('Hello.')).receipt).toMatchObject({ rung: 'live', modelCalls: 0 });
  });

  test('null on a turn undoes the rung of the settings and of the conversation', async () => {
    await using home = new Home({ scripted: { memory: 'process' } });
    for (const [settings, conversation] of [
      [{ restore: REPLAY }, {}],
      [{}, { restore: REPLAY }],
    ]) {
      const key = JSON.stringify(settings);
      const before = await home.open();
      for (const word of WORDS) await before.conversation(key, conversation ?? {}).ask(`The codeword is ${word}.`);
      await before.close();
      const tl = await home.open({}, home.with({ ...settings, agents: FORGETFUL }));
      const { receipt } = await tl.conversation(key).ask('Hello.', { restore: { rung: null } });
      expect(receipt).toMatchObject({ rung: 'transcript', modelCalls: 0 });
      await tl.close();
    }
  });
});

describe('a rebuild', () => {
  test.each([
    [{ rebuild: true }, 'transcript'],
    [{ rebuild: true, ...REPLAY }, 'replay'],
  ] as const)('%j gives a new session the history, although the present one could continue', async (restore, rung) => {
    await using home = new Home();
    const tl = await home.open();
    const chat = tl.conversation('chat');
    for (const word of WORDS) await chat.ask(`The codeword is ${word}.`);
    const { reply, receipt } = await chat.ask(WHICH_CODEWORDS, { restore });
    expect(codewordsIn(reply)).toEqual(WORDS);
    expect(receipt).toMatchObject({ rung, carried: 4, dropped: 0 });
    expect((await restoresOf(tl)).sessions).toBe(2);
    expect((await chat.ask('Hello.')).receipt).toMatchObject({ rung: 'live' });
  });

  test('a warm-up that rebuilds, and the prompt after it, build one session', async () => {
    await using home = new Home();
    const tl = await home.open();
    const chat = tl.conversation('chat');
    for (const word of WORDS) await chat.ask(`The codeword is ${word}.`);
    expect(await chat.warm({ restore: { rebuild: true, ...REPLAY } })).toMatchObject({ rung: 'replay', modelCalls: 4 });
    expect((await chat.ask('Hello.')).receipt).toMatchObject({ rung: 'live', modelCalls: 0 });
    expect((await restoresOf(tl)).sessions).toBe(2);
  });

  test('that fails leaves the present session as it is', async () => {
    await using home = new Home();
    const tl = await home.open();
    const chat = tl.conversation('chat');
    for (const word of WORDS) await chat.ask(`The codeword is ${word}.`);
    const nothingFits = { rebuild: true, budgetTokens: 0 };
    await refusedWith('restore_failed', chat.ask('Hello.', { restore: nothingFits }), /fits into the budget/);
    const { receipt } = await chat.ask('Hello.');
    expect(receipt).toMatchObject({ rung: 'resume', carried: 4, dropped: 0, delivered: 0 });
    expect((await restoresOf(tl)).sessions).toBe(1);
  });

  test('contradicts a named session, and a new session contradicts a rung that continues', async () => {
    await using home = new Home();
    const { engine } = await home.open();
    const named = { session: 'x', restore: { rebuild: true } };
    await refusedWith('invalid', engine.submit('chat', 'Hello.', named), /either names its session or rebuilds it/);
    const chosen = { newSession: 'x', restore: { rung: 'resume' } } as const;
    await refusedWith('invalid', engine.submit('chat', 'Hello.', chosen), /opens a new session, or continues/);
  });
});

const FORGETFUL = { scripted: { adapter: 'scripted', options: { memory: 'process' } } };
