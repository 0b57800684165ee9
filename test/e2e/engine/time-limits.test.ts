import { expect, test } from 'vitest';
import { compose } from '../../../src/compose.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import { isAlive } from '../../contracts/liveness.ts';
import { allEvents, ended, event, refusedWith, run, until } from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { sentTo } from '../support/stored.ts';

// The limits leave a busy machine some seconds for what has to happen before them. The tests wait at the same time.

/** A conversation whose agent already runs, so that the time of its start does not count. */
async function openWarm(home: Home) {
  const tl = await home.open();
  await tl.engine.ensure({ key: 'chat' });
  await run(tl.engine, 'chat', 'Hello.');
  return tl;
}

const stalls = async (engine: Engine) => (await allEvents(engine, 'chat')).filter((one) => one.kind === 'turn.stalled');

test.concurrent('a turn that takes longer than its limit is ended as timed out, and its reply so far is kept', async () => {
  await using home = new Home({ scripted: { cancelGraceMs: 100 } });
  const tl = await openWarm(home);
  const limits = { turnSeconds: 3 };
  const { turn, reply } = await run(tl.engine, 'chat', '/say begun\n/stream 1000 20', { limits });
  expect(turn).toMatchObject({ state: 'interrupted', failure: { code: 'timed_out' }, options: { limits } });
  expect(turn.failure?.message).toContain('3 seconds');
  expect(reply).toContain('begun');
  // The conversation continues, and its session is unsettled.
  const next = await run(tl.engine, 'chat', 'Go on.');
  expect(next.turn.state).toBe('completed');
  expect(next.receipt?.unsettled).toBe(true);
});

test.concurrent('an agent that hangs is reported first, then ended as stalled together with its process', async () => {
  await using home = new Home({ scripted: { cancelGraceMs: 100 } });
  const tl = await openWarm(home);
  const limits = { noticeSeconds: 0.5, stallSeconds: 4 };
  const { turn } = await tl.engine.submit('chat', '/say begun\n/hang!', { limits });
  const report = await event(tl.engine, 'chat', 'turn.stalled');
  expect(report.payload).toMatchObject({ n: 2, tool: null });
  expect(report.payload.silentMs).toBeGreaterThanOrEqual(500);
  expect(report.payload.endsInMs).toBeGreaterThan(0);
  const { pid } = sentTo(home, turn.id);
  expect(await ended(tl.engine, turn)).toMatchObject({ state: 'interrupted', failure: { code: 'stalled' } });
  await until('its process has ended', () => !isAlive(pid));
  // On a slow machine, the silence before its first words may be reported as well.
  const kinds = (await allEvents(tl.engine, 'chat')).map(({ kind }) => kind);
  const afterWords = kinds.slice(kinds.lastIndexOf('turn.update'));
  expect(afterWords.filter((kind) => kind === 'turn.stalled')).toHaveLength(1);
});

test.concurrent('a turn whose agent sends updates is not ended, however long it takes, and each silence is reported', async () => {
  await using home = new Home();
  const tl = await openWarm(home);
  const { turn } = await run(tl.engine, 'chat', '/stream 8 600', { limits: { noticeSeconds: 0.2, stallSeconds: 4 } });
  expect(turn.state).toBe('completed');
  expect((await stalls(tl.engine)).length).toBeGreaterThan(1);
});

test.concurrent('an agent that sends updates during a replay is not ended', async () => {
  await using home = new Home();
  const tl = await openWarm(home);
  await run(tl.engine, 'chat', '/stream 5 1000');
  const options = { restore: { rebuild: true, rung: 'replay' }, limits: { stallSeconds: 4 } } as const;
  expect((await run(tl.engine, 'chat', 'Go on.', options)).receipt).toMatchObject({ rung: 'replay', proof: 'proved' });
});

test.concurrent('a silent tool is reported by its name, and its turn is ended as stalled', async () => {
  await using home = new Home({ scripted: { cancelGraceMs: 100 } });
  const tl = await openWarm(home);
  const limits = { noticeSeconds: 0.5, stallSeconds: 4 };
  const { turn } = await run(tl.engine, 'chat', '/slow-tool build all.log 60000', { limits });
  // On a slow machine, the silence before the tool began may be reported as well.
  const named = (await stalls(tl.engine)).filter(({ payload }) => payload.tool !== null);
  expect(named).toMatchObject([{ payload: { tool: 'build' } }]);
  expect(turn).toMatchObject({ state: 'interrupted', failure: { code: 'stalled' } });
  expect(turn.failure?.message).toContain('while it ran build');
});

test.concurrent('the time in which a question waits counts for no limit', async () => {
  await using home = new Home();
  const tl = await openWarm(home);
  const limits = { turnSeconds: 5, stallSeconds: 4.5, noticeSeconds: 4 };
  const { turn } = await tl.engine.submit('chat', '/ask May I?\n/say done', { limits });
  const asked = await event(tl.engine, 'chat', 'permission.asked');
  await until('both limits have passed', () => Date.now() > asked.at + 6_000);
  expect((await tl.engine.turn(turn.id)).state).toBe('waiting');
  await tl.engine.answer(asked.payload.permissionId, 'allow');
  expect((await ended(tl.engine, turn)).state).toBe('completed');
  expect(await stalls(tl.engine)).toEqual([]);
});

test.concurrent('after the answer to a question the limits apply again', async () => {
  await using home = new Home({ scripted: { cancelGraceMs: 100 } });
  const tl = await openWarm(home);
  const { turn } = await tl.engine.submit('chat', '/ask May I?\n/hang!', { limits: { stallSeconds: 4 } });
  const asked = await event(tl.engine, 'chat', 'permission.asked');
  await tl.engine.answer(asked.payload.permissionId, 'allow');
  expect(await ended(tl.engine, turn)).toMatchObject({ state: 'interrupted', failure: { code: 'stalled' } });
});

test.concurrent('a turn whose time is over before its prompt is sent fails', async () => {
  await using home = new Home({ scripted: { startMs: 60_000 } });
  const tl = await home.open();
  await tl.engine.ensure({ key: 'chat' });
  const { turn } = await tl.engine.submit('chat', 'Hello.', { limits: { turnSeconds: 0.2 } });
  expect(await ended(tl.engine, turn)).toMatchObject({ state: 'failed', failure: { code: 'timed_out' }, sent: null });
});

test.concurrent('a turn that is cancelled while its agent is silent ends as cancelled', async () => {
  await using home = new Home({ scripted: { cancelGraceMs: 5_000 } });
  const tl = await openWarm(home);
  const { turn } = await tl.engine.submit('chat', '/hang!', { limits: { noticeSeconds: 0.1, stallSeconds: 4 } });
  await event(tl.engine, 'chat', 'turn.stalled');
  await tl.engine.cancel(turn.id);
  expect(await ended(tl.engine, turn)).toMatchObject({ state: 'cancelled' });
});

test.concurrent('limits come from the turn, else from the agent, else from the settings', async () => {
  await using home = new Home();
  const settings = {
    agents: { quick: { adapter: 'scripted', limits: { turnSeconds: 0.3 } }, other: { adapter: 'scripted' } },
    limits: { turnSeconds: 0.2, stallSeconds: null },
  };
  const { engine, parts } = await compose({ home: home.path, settings });
  expect(parts.settings.times).toEqual({ turnSeconds: 0.2, stallSeconds: null, noticeSeconds: 120 });
  await engine.ensure({ key: 'chat' });
  const hanging = async (options: object) => {
    const { turn } = await engine.submit('chat', '/hang', options);
    return (await ended(engine, turn)).failure?.message;
  };
  expect(await hanging({ agent: 'quick' })).toContain('0.3 seconds');
  expect(await hanging({ agent: 'other' })).toContain('0.2 seconds');
  expect(await hanging({ agent: 'other', limits: { turnSeconds: 0.1 } })).toContain('0.1 seconds');
  await refusedWith('invalid', engine.submit('chat', 'Hello.', { limits: { turnSeconds: 0 } }));
  await engine.close({ graceMs: 0 });
});
