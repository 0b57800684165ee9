// A conversation that works in a worktree of a repository.
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { git, makeRepository } from '../../git.ts';
import { refusedWith, run } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const DIRECTORY = 'Which directory are you in?';

test('two conversations on one repository do not see each other’s work until it is merged', async () => {
  await using home = new Home();
  const cwd = makeRepository(join(home.path, 'repository'));
  const tl = await home.open();
  const [one, two] = ['one', 'two'].map((key) => tl.conversation(key, { cwd, worktree: true }));
  if (one === undefined || two === undefined) throw new Error('two handles are missing');
  await one.ask('/tool write one.txt');
  const { reply } = await two.ask(DIRECTORY);
  const { id, worktree } = await one.get();
  expect([worktree, (await two.get()).cwd]).toEqual([true, cwd]);
  expect(await one.get()).toMatchObject({ project: { path: cwd, name: 'repository' }, branch: `throughline/${id}` });
  expect(reply).toBe(`I am in ${join(home.sandboxes, `tree-${(await two.get()).id}`, 'work')}.`);
  expect(existsSync(join(cwd, 'one.txt'))).toBe(false);
  expect(await one.changes()).toMatchObject({
    files: [{ path: 'one.txt', change: 'untracked' }],
    worktree: { branch: `throughline/${id}`, unmerged: 0 },
  });
  expect((await two.changes()).files).toEqual([]);
  const kept = await one.keepChanges({ commit: 'Add one', merge: true });
  expect(kept).toEqual({ branch: `throughline/${id}`, commit: expect.any(String), leftOut: [], merged: kept.commit });
  expect(git(cwd, 'log', '-1', '--format=%an: %s')).toBe('Ann: Add one');
  expect(existsSync(join(cwd, 'one.txt'))).toBe(true);
  await two.ask('/tool write two.txt');
  await two.discardChanges();
  expect((await two.changes()).files).toEqual([]);
  await refusedWith('conflict', two.keepChanges({ commit: 'Nothing' }), /Nothing has changed/);
  await refusedWith('invalid', two.keepChanges({}), /Nothing to do/);
});

test('a conversation keeps its kind of directory, a fork gets its own worktree, and a directory without git is refused', async () => {
  await using home = new Home();
  const cwd = makeRepository(join(home.path, 'repository'));
  const plain = join(home.path, 'plain');
  mkdirSync(plain);
  const tl = await home.open();
  await tl.conversation('tree', { cwd, worktree: true }).ask('The codeword is amber.');
  await tl.conversation('direct', { cwd }).ask('Hello.');
  await refusedWith('refused', tl.conversation('tree', { worktree: false }).ask(DIRECTORY), /kind of directory/);
  await refusedWith('refused', tl.conversation('direct', { cwd, worktree: true }).ask(DIRECTORY), /kind of directory/);
  await refusedWith('invalid', tl.conversation('x', { worktree: true }).ask(DIRECTORY), /needs "cwd"/);
  await refusedWith('invalid', tl.conversation('x', { cwd, worktree: true, sandbox: 's' }).ask(DIRECTORY), /one conv/);
  await refusedWith('refused', tl.conversation('x', { cwd: plain, worktree: true }).ask(DIRECTORY), /not in a git/);
  await refusedWith('refused', tl.conversation('direct').keepChanges({ merge: true }), /has no worktree/);
  const fork = await tl.engine.fork('tree', { key: 'fork' });
  expect(fork).toMatchObject({ cwd, worktree: true });
  expect((await tl.conversation('fork').ask(DIRECTORY)).reply).toContain(`tree-${fork.id}`);
  expect(await tl.engine.fork('tree', { cwd: plain })).toMatchObject({ cwd: plain, worktree: false });
  expect((await tl.engine.list()).map(({ key }) => key)).not.toContain('x');
});

test('a worktree that a person made counts to its repository, and a conversation without a directory to no project', async () => {
  await using home = new Home();
  const repository = makeRepository(join(home.path, 'repository'));
  const cwd = join(home.path, 'repository-fix');
  git(repository, 'worktree', 'add', '-q', cwd);
  const tl = await home.open();
  const project = { path: repository, name: 'repository' };
  const chat = tl.conversation('chat', { cwd });
  expect(await chat.ensure()).toMatchObject({ cwd, project, worktree: false, branch: null });
  expect(await tl.conversation('tree', { cwd, worktree: true }).ensure()).toMatchObject({ cwd, project });
  await chat.ask('Hello.');
  expect(await chat.fork({ key: 'copy' }).then((copy) => copy.get())).toMatchObject({ cwd, project });
  expect(await tl.conversation('own').ensure()).toMatchObject({ cwd: null, project: null, branch: null });
  git(repository, 'worktree', 'remove', cwd);
  expect((await tl.conversations()).map((one) => one.project)).toEqual([null, project, project, project]);
});

test('a conversation with uncommitted changes is not erased with its sandbox, unless the caller discards them', async () => {
  await using home = new Home();
  const cwd = makeRepository(join(home.path, 'repository'));
  const tl = await home.open();
  const chat = tl.conversation('chat', { cwd, worktree: true });
  await chat.ask('/tool write new.txt');
  const { id } = await chat.get();
  await refusedWith('refused', chat.erase({ sandbox: true }), /not committed, in a file/);
  expect((await chat.changes()).files).toHaveLength(1);
  expect((await chat.erase({ sandbox: true, discard: true })).remains).toContainEqual({
    what: 'directory',
    where: cwd,
  });
  expect(existsSync(join(home.sandboxes, `tree-${id}`))).toBe(false);
  expect(git(cwd, 'worktree', 'list').split('\n')).toHaveLength(1);
  expect(git(cwd, 'branch', '--list', 'throughline/*')).toBe('');
});

test('changes are neither kept nor discarded while a turn runs', async () => {
  await using home = new Home();
  const cwd = makeRepository(join(home.path, 'repository'));
  const tl = await home.open();
  const chat = tl.conversation('chat', { cwd, worktree: true });
  await chat.ask('/tool write new.txt');
  const { turn } = await chat.send('/hang').accepted;
  await expect.poll(async () => (await chat.get()).state).toBe('running');
  await refusedWith('conflict', chat.discardChanges(), /a turn is running/);
  await refusedWith('conflict', chat.keepChanges({ commit: 'x' }), /a turn is running/);
  await tl.engine.cancel(turn.id);
  await expect.poll(async () => (await chat.get()).state).toBe('idle');
  await chat.keepChanges({ commit: 'Now' });
});

test('agents are ended before their changes are kept or discarded: they could replace folders by links meanwhile', async () => {
  await using home = new Home();
  const cwd = makeRepository(join(home.path, 'repository'));
  const tl = await home.open();
  const chat = tl.conversation('chat', { cwd, worktree: true });
  const processes = () => home.query<object>('SELECT id FROM sessions WHERE process IS NOT NULL').length;
  for (const change of [() => chat.keepChanges({ commit: 'Add it' }), () => chat.discardChanges()]) {
    await chat.ask('/tool write new.txt');
    expect(processes()).toBe(1);
    await change();
    expect(processes()).toBe(0);
  }
  expect((await chat.ask('Hello.')).receipt?.rung).toBe('resume');
});

test('with the setting "worktree" a conversation in a repository gets a worktree, unless it says otherwise', async () => {
  await using home = new Home();
  const cwd = makeRepository(join(home.path, 'repository'));
  const settings = { agents: { scripted: { adapter: 'scripted' as const } }, sandbox: { worktree: true } };
  const tl = await home.open({}, { settings });
  expect(await tl.conversation('a', { cwd }).ensure()).toMatchObject({ worktree: true });
  expect(await tl.conversation('b', { cwd, worktree: false }).ensure()).toMatchObject({ worktree: false });
  expect(await tl.conversation('c', { cwd: home.path }).ensure()).toMatchObject({ worktree: false });
  expect(await tl.conversation('d').ensure()).toMatchObject({ worktree: false });
  await run(tl.engine, 'a', '/tool write new.txt');
  expect(readFileSync(join(cwd, 'a.txt'), 'utf8')).toBe('one\n');
  expect(existsSync(join(cwd, 'new.txt'))).toBe(false);
});
