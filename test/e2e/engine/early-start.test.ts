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

// A command keeps no session warm. It starts the program of its agent while it stores the prompt.

const COMMAND: Tuning = { maxWarm: 0 };

/** How many programs run that were started for the data home. */
function runningPrograms(home: Home): number {
  const place = placeOf(home.path);
  return [...procfs.marked()].filter((one) => one !== null && starterOf(one.mark)?.place === place).length;
}

/** A conversation with a turn, and an engine that counts the running programs just before it stores the next prompt. */
async function countingEngine(
  home: Home,
  tuning: Tuning,
  enqueueOf: (real: Store) => Store['enqueue'] = (real) => real.enqueue,
) {
  const first = await home.engine({}, tuning);
  const { turn } = await run(first, 'chat', 'The codeword is osprey.');
  await first.close();
  const programs = { beforeStoring: -1 };
  const store = (real: Store): Store => ({
    ...real,
    enqueue(...args) {
      programs.beforeStoring = runningPrograms(home);
      return enqueueOf(real)(...args);
    },
  });
  return { engine: await home.engine({ store }, tuning), programs, id: turn.conversationId };
}

function onLinux(name: string, run: () => Promise<void>): void {
  test(name, (context) =>
    process.platform === 'linux' ? run() : context.skip('only /proc shows for which data home a program was started'),
  );
}

onLinux('the agent of a command runs before the prompt is stored, and answers it', async () => {
  await using home = new Home();
  const { engine, programs, id } = await countingEngine(home, COMMAND);
  const { turn } = await engine.submit('chat', '/say begun\n/await go');
  await event(engine, id, 'turn.update', { turn: turn.id });
  expect([programs.beforeStoring, runningPrograms(home)]).toEqual([1, 1]);
  writeFileSync(join(home.sandboxes, id, 'work', 'go'), '');
  expect((await ended(engine, turn)).state).toBe('completed');
  await engine.close();
  expect(runningPrograms(home)).toBe(0);
});

onLinux('the agent of a command has ended when its prompt is refused', async () => {
  await using home = new Home();
  const refuse = async () => Promise.reject(new ThroughlineError('storage_full', 'No space is left.'));
  const { engine, programs } = await countingEngine(home, COMMAND, () => refuse);
  await expect(engine.submit('chat', 'Hello')).rejects.toMatchObject({ code: 'storage_full' });
  expect([programs.beforeStoring, runningPrograms(home)]).toEqual([1, 0]);
});

onLinux('the agent of a command whose turn another process runs has ended when the command is closed', async () => {
  await using home = new Home();
  const { engine, programs } = await countingEngine(home, COMMAND);
  const other = await home.engine({}, { maxWarm: 1 });
  await other.warm('chat');
  expect(runningPrograms(home)).toBe(1);
  const { turn } = await engine.submit('chat', 'Which codewords have you seen?');
  await ended(engine, turn);
  expect((await engine.answerOf(turn.id)).reply).toContain('osprey');
  expect(programs.beforeStoring).toBe(2);
  await engine.close();
  expect(runningPrograms(home)).toBe(1);
});

onLinux('a process that keeps sessions warm starts no agent before the prompt is stored', async () => {
  await using home = new Home();
  const { engine, programs } = await countingEngine(home, { maxWarm: 1 });
  await run(engine, 'chat', 'Hello');
  expect(programs.beforeStoring).toBe(0);
});
