import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { localProcess } from '../../../src/core/process.ts';
import { identityOf, isAlive } from '../../contracts/liveness.ts';
import { refusedWith, run } from '../support/conversations.ts';
import { Home, ONE_STORAGE } from '../support/home.ts';

const SECRET = 'The codeword is swordfish.';

/** The contents of all files below a directory. */
function textsBelow(path: string): string {
  if (!existsSync(path)) return '';
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' }).map((name) => join(path, name));
  return names.map((name) => (statSync(name).isFile() ? readFileSync(name, 'utf8') : '')).join('\n');
}

test('erasing leaves what agents wrote and reports where it is; with the sandbox, that is deleted as well', async () => {
  await using home = new Home();
  const tl = await home.open();
  for (const key of ['kept', 'deleted', 'other']) await run(tl.engine, key, SECRET);
  const { id: kept } = await tl.engine.conversation('kept');
  const { id: deleted } = await tl.engine.conversation('deleted');
  const { id: other } = await tl.engine.conversation('other');
  const { head } = await tl.engine.verify('kept');
  await run(tl.engine, 'kept', 'And more.');
  await refusedWith('conflict', tl.engine.erase('kept', { head }), /has changed since it was verified/);
  await refusedWith('invalid', tl.engine.erase('kept', { head: 'x' }), /head/);
  expect(await tl.engine.erase('kept', { head: (await tl.engine.verify('kept')).head })).toEqual({
    conversationId: kept,
    remains: [{ what: 'sandbox', where: join(home.sandboxes, kept) }],
  });
  expect(textsBelow(join(home.sandboxes, kept))).toContain('swordfish');
  expect(await tl.engine.erase('deleted', { sandbox: true })).toEqual({ conversationId: deleted, remains: [] });
  expect(readdirSync(home.sandboxes).toSorted()).toEqual([kept, other].toSorted());
  expect(await tl.engine.erase(kept, { sandbox: true })).toEqual({ conversationId: kept, remains: [] });
  expect(await tl.engine.erase(kept, { sandbox: true })).toEqual({ conversationId: kept, remains: [] });
  expect(readdirSync(home.sandboxes)).toEqual([other]);
  await refusedWith('not_found', tl.engine.erase(kept), /There is no conversation/);
  await refusedWith('not_found', tl.engine.as('ann').erase(kept, { sandbox: true }), /There is no conversation/);
  expect((await run(tl.engine, 'other', 'Which codewords have you seen?')).reply).toContain('swordfish');
  const db = new DatabaseSync(home.file);
  const left = db.prepare('SELECT 1 FROM erasures WHERE sandbox = 1').all();
  expect(left, 'what was not cut off is not left to the next process').toEqual([]);
  db.close();
});

test('several processes that finish the same erasure at once delete the sandbox, and none of them fails', async () => {
  await using home = new Home();
  const tl = await home.open();
  for (const key of ['first', 'second']) await run(tl.engine, key, SECRET);
  const { id } = await tl.engine.conversation('first');
  const { id: other } = await tl.engine.conversation('second');
  for (let n = 0; n < 500; n += 1) {
    const folder = join(home.sandboxes, id, 'work', `${n}`);
    mkdirSync(folder);
    writeFileSync(join(folder, 'file'), '');
  }
  await tl.engine.erase('first');
  await tl.close();
  const db = new DatabaseSync(home.file);
  db.exec('UPDATE erasures SET sandbox = 1');
  const left = db.prepare('SELECT 1 FROM erasures WHERE sandbox = 1');
  const opened = await Promise.all([1, 2, 3].map(() => home.open()));
  await Promise.all(opened.map((one) => one.close()));
  expect([readdirSync(home.sandboxes), left.all()]).toEqual([[other], []]);
  db.close();
});

test('an agent that is kept warm, here or in another process, is ended before its sandbox is deleted', async () => {
  await using home = new Home();
  const [tl, host] = await Promise.all([home.open(), home.host()]);
  await run(tl.engine, 'here', SECRET);
  await host.calls.ask('there', SECRET);
  for (const key of ['here', 'there']) {
    const { id } = await tl.engine.conversation(key);
    const [row] = home.query<{ process: string }>(
      'SELECT s.process FROM sessions s JOIN conversations c ON c.no = s.conv WHERE c.id = ?',
      id,
    );
    const { pid } = identityOf(JSON.parse(row?.process ?? 'null'));
    expect(isAlive(pid)).toBe(true);
    await tl.engine.erase(key, { sandbox: true });
    expect(isAlive(pid)).toBe(false);
    expect(existsSync(join(home.sandboxes, id))).toBe(false);
  }
});

test('an agent that cannot be ended from here keeps its sandbox; its pid is not published', async () => {
  await using home = new Home();
  const tl = await home.open();
  const { turn } = await run(tl.engine, 'chat', SECRET);
  await tl.engine.kill('chat');
  const elsewhere = localProcess({ pid: 4711, started: '1', boot: 'another', namespace: 'another' });
  const edit = new DatabaseSync(home.file);
  edit.prepare('UPDATE sessions SET process = ?').run(JSON.stringify(elsewhere));
  edit.close();
  const sandbox = join(home.sandboxes, turn.conversationId);
  const error = await tl.engine.erase('chat', { sandbox: true }).catch((thrown) => thrown);
  expect(error).toMatchObject({ code: 'conflict', hint: expect.stringContaining(`End the programs in ${sandbox}`) });
  expect(`${error.message} ${error.hint}`).toContain('scripted may still run in it');
  expect(`${error.message} ${error.hint}`).not.toContain('4711');
  expect(existsSync(sandbox)).toBe(true);
});

test('a directory that the caller named, and sessions that an agent keeps elsewhere, are reported and never deleted', async () => {
  await using home = new Home({ scripted: { dir: ONE_STORAGE } });
  const tl = await home.open();
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-erase-')));
  try {
    writeFileSync(join(cwd, 'precious'), 'kept');
    await tl.engine.ensure({ key: 'chat', cwd });
    const { turn } = await run(tl.engine, 'chat', SECRET);
    const { conversationId: erased, remains } = await tl.engine.erase('chat', { sandbox: true });
    const storage = join(home.sandboxes, 'storage');
    expect(remains).toEqual([
      { what: 'directory', where: cwd },
      { what: 'session', where: storage, agent: 'scripted', sessionId: turn.sessionId },
    ]);
    expect(readFileSync(join(cwd, 'precious'), 'utf8')).toBe('kept');
    expect(textsBelow(storage)).toContain('swordfish');
    expect(existsSync(join(home.sandboxes, erased))).toBe(false);
  } finally {
    rmSync(cwd, { recursive: true });
  }
});

test('a sandbox that others share or work in is not deleted, and then nothing is erased', async () => {
  await using home = new Home();
  const tl = await home.open();
  for (const key of ['one', 'two']) {
    await tl.engine.ensure({ key, sandbox: 'shared' });
    await run(tl.engine, key, SECRET);
  }
  await refusedWith(
    'refused',
    tl.engine.erase('one', { sandbox: true }),
    /has a name, and other conversations may share/,
  );
  const third = await run(tl.engine, 'three', SECRET);
  const inside = join(home.sandboxes, third.turn.conversationId, 'work', 'part');
  mkdirSync(inside);
  await tl.engine.ensure({ key: 'four', cwd: inside });
  await refusedWith('refused', tl.engine.erase('three', { sandbox: true }), /works in/);
  expect((await tl.engine.list()).map(({ key }) => key).toSorted()).toEqual(['four', 'one', 'three', 'two']);
  expect(existsSync(inside)).toBe(true);
  const { turn } = await tl.engine.submit('four', '/hang');
  await refusedWith('conflict', tl.engine.erase('four', { sandbox: true }), /turns that have not ended/);
  await tl.engine.cancel(turn.id);
});
