import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { ThroughlineError } from '../../../src/core/errors.ts';
import type { Write } from '../../../src/ports/store/writes.ts';
import type { Store } from '../../../src/ports/store.ts';
import { isAlive } from '../../contracts/liveness.ts';
import {
  codewordsIn,
  effects,
  ended,
  event,
  expectSound,
  run,
  until,
  WHICH_CODEWORDS,
} from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { sentTo } from '../support/stored.ts';

/** A store whose disk is full while `isFull` returns true, for all that a running turn writes. */
function fullWhile(isFull: () => boolean, onWritten: (writes: readonly Write[]) => void = () => {}) {
  return (store: Store): Store =>
    new Proxy(store, {
      get(target, name) {
        const value = Reflect.get(target, name);
        if (name !== 'commit') return typeof value === 'function' ? value.bind(target) : value;
        return async (...args: Parameters<Store['commit']>) => {
          if (isFull()) throw new ThroughlineError('storage_full', 'No room.');
          const committed = await target.commit(...args);
          onWritten(args[2]);
          return committed;
        };
      },
    });
}

const isUpdate = (write: Write) => write.write === 'event' && write.event.kind === 'turn.update';

test('a disk that is full for a while in the middle of a turn delays it, and nothing is lost', async () => {
  await using home = new Home();
  let full = false;
  let fillsUp = false;
  let refused = 0;
  const isFull = () => {
    if (full) refused += 1;
    return full;
  };
  const store = fullWhile(isFull, (writes) => {
    full ||= fillsUp && writes.some(isUpdate);
  });
  const engine = await home.engine({ store });
  await engine.ensure({ key: 'chat' });
  await run(engine, 'chat', 'The codeword is amber.');
  fillsUp = true;
  const { turn } = await engine.submit('chat', `/stream 20 5\n${WHICH_CODEWORDS}`);
  await until('the disk was found full', () => refused > 2);
  expect((await engine.turn(turn.id)).state).toBe('running');
  fillsUp = full = false;
  expect((await ended(engine, turn)).state).toBe('completed');
  const { reply } = await engine.answerOf(turn.id);
  expect(reply).toContain('chunk 20');
  expect(codewordsIn(reply)).toEqual(['amber']);
  await expectSound(engine, 'chat');
});

test('a disk that stays full ends the agent, and the turn is interrupted once there is room', async () => {
  await using home = new Home();
  let full = false;
  const engine = await home.engine({ store: fullWhile(() => full) }, { storageMs: 100 });
  await engine.ensure({ key: 'chat' });
  await run(engine, 'chat', 'The codeword is amber.');
  const { turn } = await engine.submit('chat', '/stream 100000 5');
  await event(engine, 'chat', 'turn.update', { turn: turn.id });
  const { pid } = sentTo(home, turn.id);
  full = true;
  await until('the agent was ended', () => !isAlive(pid));
  full = false;
  const { reply } = await run(engine, 'chat', WHICH_CODEWORDS);
  expect((await engine.turn(turn.id)).state).toBe('interrupted');
  expect((await engine.answerOf(turn.id)).reply).toContain('chunk 1 ');
  expect(codewordsIn(reply)).toEqual(['amber']);
  await expectSound(engine, 'chat');
});

test('a database that another program keeps locked for a while delays a turn, and nothing is lost', async () => {
  await using home = new Home();
  const { engine } = await home.open();
  const { id: sandbox } = await engine.ensure({ key: 'chat' });
  const { turn } = await engine.submit('chat', '/stream 60 5\n/tool write done.log');
  await event(engine, 'chat', 'turn.update', { turn: turn.id });
  const otherProgram = new DatabaseSync(home.file);
  otherProgram.exec('BEGIN IMMEDIATE');
  const before = await engine.conversation('chat');
  const done = join(home.sandboxes, sandbox, 'work', 'done.log');
  await until('the agent is done', () => effects(done) === 1);
  expect((await engine.conversation('chat')).lastSeq).toBe(before.lastSeq);
  otherProgram.exec('ROLLBACK');
  otherProgram.close();
  expect((await ended(engine, turn)).state).toBe('completed');
  expect((await engine.answerOf(turn.id)).reply).toContain('chunk 60');
  await expectSound(engine, 'chat');
});

test('a claimed turn begins, although the store does not answer the next search for work', async () => {
  await using home = new Home();
  const lateAnswer = Promise.withResolvers<never[]>();
  let foundWork = false;
  const slow = (store: Store): Store =>
    new Proxy(store, {
      get(target, name) {
        const value = Reflect.get(target, name);
        if (name !== 'next') return typeof value === 'function' ? value.bind(target) : value;
        return async (...args: Parameters<Store['next']>) => {
          if (foundWork) return lateAnswer.promise;
          const next = await target.next(...args);
          foundWork = next.length > 0;
          return next;
        };
      },
    });
  const engine = await home.engine({ store: slow, settings: { claims: 'all' } });
  await engine.ensure({ key: 'chat' });
  const { turn } = await engine.submit('chat', 'Hello.');
  expect((await ended(engine, turn)).state).toBe('completed');
  expect(foundWork).toBe(true);
  lateAnswer.resolve([]);
});
