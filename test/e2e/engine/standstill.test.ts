// A process that was suspended, or got no processor time, for longer than its leases last. No other process took over.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { allEvents, effects, ended, event, expectSound, until } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const LEASE_MS = 200;

/** Blocks this process for two leases: neither its timers nor its I/O run. */
function blockProcess(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * LEASE_MS);
}

test('a worker does not claim its own conversation again: its running turn continues', async () => {
  await using home = new Home();
  const { engine } = await home.open({ claims: 'all', leaseMs: LEASE_MS });
  for (const key of ['chat', 'other']) await engine.ensure({ key });
  const { turn } = await engine.submit('chat', '/say the beginning\n/ask May I?');
  const asked = await event(engine, 'chat', 'permission.asked', { turn: turn.id });
  // After the pause, the worker first looks for work, and there is some.
  const other = engine.submit('other', 'Hello.');
  blockProcess();
  expect((await ended(engine, (await other).turn)).state).toBe('completed');
  await engine.answer(asked.payload.permissionId, 'allow');
  expect(await ended(engine, turn)).toMatchObject({ state: 'completed', attempt: 1 });
  expect((await allEvents(engine, 'chat')).filter(({ kind }) => kind === 'turn.started')).toHaveLength(1);
  await expectSound(engine, 'chat');
});

test('a runner does not claim its own task again: its running gate is not started twice', async () => {
  await using home = new Home();
  const tl = await home.open({ claims: 'all', leaseMs: LEASE_MS });
  const gate = `echo begun >> ${home.path}/gates; until [ -e ${home.path}/go ]; do sleep 0.1; done`;
  const { tasks } = await tl.tasks.add({ goal: 'x', gate });
  await until('the gate runs', () => effects(join(home.path, 'gates')) === 1);
  const other = tl.tasks.run({ goal: 'y' });
  blockProcess();
  expect(await other).toMatchObject([{ state: 'done' }]);
  writeFileSync(join(home.path, 'go'), '');
  expect(await tl.tasks.waitFor(tasks.map(({ id }) => id))).toMatchObject([{ state: 'done', progress: { turns: 1 } }]);
  expect(effects(join(home.path, 'gates'))).toBe(1);
  const starts = "SELECT task FROM task_events WHERE kind = 'task.started' GROUP BY task HAVING count(*) > 1";
  expect(home.query(starts)).toEqual([]);
});
