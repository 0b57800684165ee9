import { test } from 'vitest';
import type { Command, Setup } from './engine/commands.ts';
import { playOnStore } from './engine/play.ts';

// Sequences that once broke a rule, or that the random ones reach too seldom.
const onStore = playOnStore();
const play = (setup: Partial<Setup>, commands: readonly Command[]) =>
  onStore({ do: 'agents', a: 'plain', b: 'plain', ...setup }, commands);

type Submit = Extract<Command, { do: 'submit' }>;
const submit = (conversation: number, told: Partial<Submit> = {}): Command => ({
  do: 'submit',
  conversation,
  script: 'answers',
  agent: 'a',
  session: null,
  restore: {},
  wait: 'stillness',
  ...told,
});
const still = { wait: 'stillness' } as const;

test('an agent that names the session of another conversation gives nothing of it away', async () => {
  const steal: Command = { do: 'same id', session: 0, ...still };
  await play({ a: 'late to name itself' }, [submit(0), submit(0), steal, submit(1), submit(1)]);
  await play({ a: 'plain' }, [submit(0), submit(0), steal, submit(1), submit(1)]);
});

test('a session that somebody else used between two attempts stays diverged, also when the turn then fails', async () => {
  const onlyThere = { rung: 'live' } as const;
  await play({}, [submit(0), submit(0, { script: 'fails and is used', restore: onlyThere }), submit(0)]);
});

test('a session with the id of an earlier one brings no answer of that one, wherever the engine dies', async () => {
  const crash = (passes: number): Command => ({ do: 'crash', engine: 0, passes, children: false, wait: 0 });
  for (let passes = 20; passes < 70; passes += 1) {
    await play({ a: 'late to name itself' }, [
      submit(1),
      { do: 'hollow', how: 'openly', wait: 0 },
      crash(0),
      { do: 'same id', session: 0, ...still },
      { do: 'let leases run out', wait: 1 },
      crash(passes),
      submit(1),
    ]);
  }
});

test('a session that was reopened without proof does not count as proved while it is live', async () => {
  const auto = { policy: 'auto' } as const;
  await play({ b: 'unproved' }, [
    { do: 'hollow', how: 'openly', wait: 0 },
    submit(0, { agent: 'b' }),
    { do: 'crash', engine: 0, passes: 0, children: false, wait: 0 },
    submit(0, { agent: null, restore: auto, wait: 0 }),
    submit(0, { agent: null, restore: auto }),
    submit(0, { agent: null, session: 0, wait: 0 }),
    { do: 'lose a session', session: 0, ...still },
  ]);
});

test('a session that was reopened empty and without proof is used again only under the policy "auto"', async () => {
  const auto = { policy: 'auto' } as const;
  await play({ a: 'unproved' }, [
    { do: 'hollow', how: 'openly', wait: 0 },
    submit(0),
    { do: 'crash', engine: 0, passes: 0, children: false, wait: 0 },
    submit(0, { restore: auto }),
    submit(0, { restore: auto }),
    submit(0),
  ]);
});

test('a failed prompt is not in the context of the next attempt, also when the engine dies in between', async () => {
  for (let passes = 28; passes < 52; passes += 1) {
    await play({ a: 'like Claude' }, [
      submit(0),
      { do: 'crash', engine: 0, passes, children: false, wait: 0 },
      submit(0, { script: 'fails once' }),
    ]);
  }
});

test('a replay during which the agent condenses, changes its session or is reopened claims no more than it has', async () => {
  const replay = { rebuild: true, rung: 'replay' } as const;
  const auto = { ...replay, policy: 'auto' } as const;
  for (const a of [
    'replaying',
    'replaying, and forgetful with each prompt',
    'forgetful with each prompt, and readable',
    'assigned and rotating',
    'reopened after a replay',
    'reopened after a replay, unproved',
  ] as const) {
    const turns = [submit(0), submit(0, { script: 'condenses' }), submit(0)];
    await play({ a }, [...turns, submit(0, { restore: replay }), submit(0, { restore: auto }), submit(0)]);
  }
});
