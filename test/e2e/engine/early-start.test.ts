import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ThroughlineError } from '../../../src/core/errors.ts';
import { starterOf } from '../../../src/core/process.ts';
import { placeOf } from '../../../src/host/place.ts';
import { procfs } from '../../../src/host/process-table.ts';
import type { Store } from '../../../src/ports/store.ts';
import { ended, event, run } from '../support/conversations.ts';
import { Home, type Tuning } from '../support/home.ts';

/* A command, which keeps nothing warm, starts the program of its agent while it stores the prompt. */

const COMMAND: Tuning = { maxWarm: 0 };

/** How many programs were started for the data home and run now. */
function programs(home: Home): number {
  const place = placeOf(home.path);
  return [...procfs.marked()].filter((one) => one !== null && starterOf(one.mark)?.place === place).length;
}

/** A conversation with a turn, and an engine that says how many programs run when the next prompt is about to be stored. */
async function begun(home: Home, tuning: Tuning, storing: (own: Store) => Store['enqueue'] = (own) => own.enqueue) {
  const first = await home.engine({}, tuning);
  const { turn } = await run(first, 'chat', 'The codeword is osprey.');
  await first.close();
  const seen = { atStoring: -1 };
  const store = (own: Store): Store => ({
    ...own,
    enqueue(...args) {
      seen.atStoring = programs(home);
      return storing(own)(...args);
    },
  });
  return { engine: await home.engine({ store }, tuning), seen, id: turn.conversationId };
}

function onLinux(name: string, run: () => Promise<void>): void {
  test(name, (context) => (process.platform === 'linux' ? run() : context.skip('only /proc shows whose a program is')));
}

onLinux('it runs when the prompt is stored, and answers it', async () => {
  await using home = new Home();
  const { engine, seen, id } = await begun(home, COMMAND);
  const { turn } = await engine.submit('chat', '/say begun\n/await go');
  await event(engine, id, 'turn.update', { turn: turn.id });
  expect([seen.atStoring, programs(home)]).toEqual([1, 1]);
  writeFileSync(join(home.sandboxes, id, 'work', 'go'), '');
  expect((await ended(engine, turn)).state).toBe('completed');
  await engine.close();
  expect(programs(home)).toBe(0);
});

onLinux('it has ended when the prompt is refused', async () => {
  await using home = new Home();
  const refuse = async () => Promise.reject(new ThroughlineError('storage_full', 'No space is left.'));
  const { engine, seen } = await begun(home, COMMAND, () => refuse);
  await expect(engine.submit('chat', 'Hello')).rejects.toMatchObject({ code: 'storage_full' });
  expect([seen.atStoring, programs(home)]).toEqual([1, 0]);
});

onLinux('it has ended when the engine is closed, and another process runs the turn', async () => {
  await using home = new Home();
  const { engine, seen } = await begun(home, COMMAND);
  const other = await home.engine({}, { maxWarm: 1 });
  await other.warm('chat');
  expect(programs(home)).toBe(1);
  const { turn } = await engine.submit('chat', 'Which codewords have you seen?');
  await ended(engine, turn);
  expect((await engine.answerOf(turn.id)).reply).toContain('osprey');
  expect(seen.atStoring).toBe(2);
  await engine.close();
  expect(programs(home)).toBe(1);
});

onLinux('a process that keeps agents starts none before the prompt is stored', async () => {
  await using home = new Home();
  const { engine, seen } = await begun(home, { maxWarm: 1 });
  await run(engine, 'chat', 'Hello');
  expect(seen.atStoring).toBe(0);
});
