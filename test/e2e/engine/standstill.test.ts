// A process that stood still for longer than its leases last: suspended, or kept from the processor. Nobody came meanwhile.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { allEvents, effects, ended, event, expectSound, until } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const LEASE_MS = 200;

/** Nothing of this process runs, neither its timers nor its reading. */
function standStill(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * LEASE_MS);
}

test('a worker does not take its own conversation over: the turn that it runs goes on', async () => {
  await using home = new Home();
  const { engine } = await home.open({ claims: 'all', leaseMs: LEASE_MS });
  for (const key of ['chat', 'other']) await engine.ensure({ key });
  const { turn } = await engine.submit('chat', '/say the beginning\n/ask May I?');
  const asked = await event(engine, 'chat', 'permission.asked', { turn: turn.id });
  // What it does first when it goes on is to look for work: there is some.
  const other = engine.submit('other', 'Hello.');
  standStill();
  expect((await ended(engine, (await other).turn)).state).toBe('completed');
  await engine.answer(asked.payload.permissionId, 'allow');
  expect(await ended(engine, turn)).toMatchObject({ state: 'completed', attempt: 1 });
  expect((await allEvents(engine, 'chat')).filter(({ kind }) => kind === 'turn.started')).toHaveLength(1);
  await expectSound(engine, 'chat');
});

test('a runner does not give its own task back: what it does for it is not begun again', async () => {
  await using home = new Home();
  const tl = await home.open({ claims: 'all', leaseMs: LEASE_MS });
  const gate = `echo begun >> ${home.path}/gates; until [ -e ${home.path}/go ]; do sleep 0.1; done`;
  const { tasks } = await tl.tasks.add({ goal: 'x', gate });
  await until('the gate runs', () => effects(join(home.path, 'gates')) === 1);
  const other = tl.tasks.run({ goal: 'y' });
  standStill();
  expect(await other).toMatchObject([{ state: 'done' }]);
  writeFileSync(join(home.path, 'go'), '');
  expect(await tl.tasks.waitFor(tasks.map(({ id }) => id))).toMatchObject([{ state: 'done', progress: { turns: 1 } }]);
  expect(effects(join(home.path, 'gates'))).toBe(1);
  const starts = "SELECT task FROM task_events WHERE kind = 'task.started' GROUP BY task HAVING count(*) > 1";
  expect(home.query(starts)).toEqual([]);
});
