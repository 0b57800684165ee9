// The hint of a turn that failed fits its cause: it names what can change it, and nothing that cannot.
import { describe, expect, test } from 'vitest';
import type { SubmitOptions } from '../../../src/ports/engine.ts';
import { run } from '../support/conversations.ts';
import { type Agents, Home } from '../support/home.ts';

interface Case {
  readonly agent?: Agents[string];
  /** In the settings. */
  readonly restore?: object;
  readonly options?: SubmitOptions;
  readonly code: string;
  readonly says: readonly RegExp[];
}

const FORGETFUL = { memory: 'process' } as const;
const BUDGET = [/restore\.budgetTokens/, /--budget-tokens/];
const AUTO = [/policy "auto"/, /--restore auto/];
const RUNG = [/another rung/];
/** Everything that a hint may advise: what a case does not name is not in its hint. */
const ADVICE = [...BUDGET, ...AUTO, ...RUNG, /--last-turns/, /--allow-tools/, /--rebuild/, /another agent/];

async function failureOf(home: Home, { agent = {}, restore = {}, options = {} }: Case) {
  const agents = { scripted: { adapter: 'scripted', options: agent } };
  const before = await home.open({}, home.with({ agents }));
  await before.conversation('chat').ask('The codeword is amber.');
  await before.close();
  const tl = await home.open({}, home.with({ agents, restore }));
  return (await run(tl.engine, 'chat', 'Go on.', options)).turn.failure;
}

const CASES: Record<string, Case> = {
  'a budget into which nothing fits': {
    agent: FORGETFUL,
    options: { restore: { budgetTokens: 0 } },
    code: 'restore_failed',
    says: [...BUDGET, /another agent/],
  },
  'no turns at all': {
    agent: FORGETFUL,
    options: { restore: { lastTurns: 0 } },
    code: 'restore_failed',
    says: [/restore\.lastTurns/, /--last-turns/],
  },
  'a session whose context nothing proves': {
    agent: { resume: 'hollow', position: false },
    options: { restore: { rung: 'resume' } },
    code: 'restore_failed',
    says: [...AUTO, /another agent/],
  },
  'a replay that could run tools': {
    agent: { noTools: false },
    options: { restore: { rebuild: true, rung: 'replay' } },
    code: 'restore_failed',
    says: [/--allow-tools/, ...RUNG],
  },
  'a rung that the agent does not have': {
    options: { restore: { rebuild: true, rung: 'rehydrate' } },
    code: 'restore_failed',
    says: [...RUNG, /another agent/],
  },
  'a preferred rung that is not possible, after the session was lost': {
    agent: { ...FORGETFUL, noTools: false },
    restore: { rung: 'replay' },
    code: 'restore_failed',
    says: [/--allow-tools/, ...RUNG],
  },
};

test.each(Object.entries(CASES))('%s', async (_, one) => {
  await using home = new Home();
  const failure = await failureOf(home, one);
  expect(failure).toMatchObject({ code: one.code, hint: expect.stringMatching(/^Nothing was sent\. /) });
  for (const advice of one.says) expect(failure?.hint).toMatch(advice);
  const allowed = one.says.map(String);
  const others = ADVICE.filter((advice) => !allowed.includes(String(advice)) && advice.test(failure?.hint ?? ''));
  expect(others, failure?.hint).toEqual([]);
});

test('an agent that opens no session: what it reports, and no advice about the history', async () => {
  await using home = new Home();
  const refusing = async (hint?: string) => {
    const engine = await home.engine({
      agent: (agent) => ({
        ...agent,
        open: async () => ({ ok: false, reason: 'refused', message: 'out of order', ...(hint && { hint }) }),
      }),
    });
    return (await run(engine, hint ?? 'none', 'Hello.')).turn.failure;
  };
  expect(await refusing()).toMatchObject({
    message: 'The context could not be restored: new: the agent refused: out of order.',
    hint: 'Nothing was sent. Correct what the agent reports, or name another agent.',
  });
  expect(await refusing('Put it in order.')).toMatchObject({ hint: 'Nothing was sent. Put it in order.' });
});

describe('a prompt that is too long', () => {
  const LONG = 'x'.repeat(40_000);

  test('the first of a conversation: there is nothing to rebuild', async () => {
    await using home = new Home({ a: { maxPromptTokens: 3_000 } });
    const { engine } = await home.open();
    const { turn } = await run(engine, 'chat', LONG);
    expect(turn.failure).toMatchObject({ code: 'too_long' });
    expect(turn.failure?.hint).toMatch(/^Send a shorter prompt/);
    expect(turn.failure?.hint).not.toMatch(/rebuild|rung|budget/);
  });

  test('in a session with a history: a rebuild gives it less of that', async () => {
    await using home = new Home({ a: { maxPromptTokens: 3_000 } });
    const { engine } = await home.open();
    await run(engine, 'chat', 'The codeword is amber.');
    const { turn } = await run(engine, 'chat', LONG);
    expect(turn.failure?.hint).toMatch(/^Send a shorter prompt, or .*"rebuild": true.*--rebuild/);
  });

  test('in a session that was just rebuilt: only a smaller budget helps', async () => {
    await using home = new Home({ a: { maxPromptTokens: 3_000 } });
    const { engine } = await home.open();
    await run(engine, 'chat', 'The codeword is amber.');
    const { turn } = await run(engine, 'chat', LONG, { restore: { rebuild: true, rung: 'replay' } });
    expect(turn.failure?.hint).toMatch(/^Send a shorter prompt, or less .*--budget-tokens/);
    expect(turn.failure?.hint).not.toMatch(/--rebuild/);
  });
});

test.each([
  [{ mode: 'nope' }, 'Leave out "mode".'],
  [{ model: 'small' }, 'Leave out "model".'],
  [{ mode: 'nope', config: { speed: 'x' } }, 'Leave out "mode" and "config" (--set).'],
])('of an agent that has nothing to choose, %j is refused before it is stored', async (choices, advice) => {
  await using home = new Home();
  const { engine } = await home.open();
  await run(engine, 'chat', 'Hello.');
  const refusal = {
    code: 'refused',
    message: 'scripted: this agent has no model, mode or config options to choose.',
    hint: `Nothing was sent. ${advice}`,
  };
  await expect(engine.submit('chat', 'Hello.', choices)).rejects.toMatchObject(refusal);
  await expect(engine.ensure({ key: 'another', ...choices })).rejects.toMatchObject(refusal);
  expect(await engine.turns('chat')).toHaveLength(1);
  expect(await engine.list()).toHaveLength(1);
});

test('what an agent is known not to have is refused before it is stored; a request that is repeated gets its turn', async () => {
  await using home = new Home();
  const lacks = async ({ mode }: { mode?: string }) => (mode === 'nope' ? 'it has no mode "nope"; it has: plan' : null);
  let isKnown = false;
  const engine = await home.engine({
    agent: (agent) => ({ ...agent, lacks: async (choices) => (isKnown ? lacks(choices) : null) }),
  });
  const choice = { mode: 'nope', requestId: 'r-1' };
  const { turn } = await run(engine, 'chat', 'Hello.', choice);
  isKnown = true;
  expect(await engine.submit('chat', 'Hello.', choice)).toMatchObject({ duplicate: true, turn: { id: turn.id } });
  for (const key of ['chat', 'another']) {
    await expect(engine.submit(key, 'Hello.', { mode: 'nope' })).rejects.toMatchObject({
      code: 'refused',
      message: 'scripted: it has no mode "nope"; it has: plan.',
      hint: 'Nothing was sent. Choose another value, or leave out "mode".',
    });
  }
  for (const key of ['chat', 'another']) {
    await expect(engine.ensure({ key, mode: 'nope' })).rejects.toMatchObject({ code: 'refused' });
    await expect(engine.submit(key, 'Hello.', { create: { mode: 'nope' } })).rejects.toMatchObject({ code: 'refused' });
  }
  expect((await engine.ensure({ key: 'chat', mode: 'plan' })).choices).toMatchObject({ mode: 'plan' });
  expect((await engine.ensure({ key: 'chat', mode: null })).choices).toEqual({});
  expect(await engine.turns('chat')).toHaveLength(1);
  expect((await engine.list()).map(({ key }) => key)).toEqual(['chat']);
});
