import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemProcesses as processes } from '../../../test/contracts/liveness.ts';
import { textOf } from '../../../test/contracts/sandbox/around.ts';
import { isolatedSandboxes, whyNoBubblewrap } from '../../../test/contracts/sandbox/bubblewrap-given.ts';
import { git, write } from '../../../test/git.ts';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import type { Sandboxes, Worktrees } from '../../ports/sandbox.ts';
import { directorySandboxes } from './directory-sandboxes.ts';

const ID = 'tree-one';
const BRANCH = 'throughline/one';

/** A repository with a commit. Everything that its settings name leaves a trace when it runs. */
function repository(): { path: string; trace: string } {
  const path = temporaryFolder();
  const trace = join(temporaryFolder(), 'ran');
  git(path, 'init', '--quiet', '--initial-branch', 'main');
  const settings = { 'user.name': 'Ann', 'user.email': 'ann@example.org', 'core.fsmonitor': `touch ${trace}; false` };
  const filter = { 'filter.f.clean': `touch ${trace}; cat`, 'filter.f.smudge': `touch ${trace}; cat` };
  write(path, 'a.txt', 'one\ntwo\nthree\n');
  write(path, 'sub/b.txt', 'b\n');
  write(path, '.gitignore', 'ignored\n');
  for (const [name, value] of Object.entries({ 'user.name': 'Ann', 'user.email': 'ann@example.org' }))
    git(path, 'config', name, value);
  git(path, 'add', '--all');
  git(path, 'commit', '--quiet', '--message', 'first');
  for (const [name, value] of Object.entries({ ...settings, ...filter })) git(path, 'config', name, value);
  for (const hook of ['post-checkout', 'pre-commit', 'commit-msg', 'reference-transaction', 'post-merge']) {
    write(path, `.git/hooks/${hook}`, `#!/bin/sh\ntouch ${trace}\n`);
    chmodSync(join(path, '.git/hooks', hook), 0o755);
  }
  return { path, trace };
}

/** The sandbox of a conversation in it; `root`: where sandboxes are. */
async function given({ cwd = '' } = {}) {
  const { path, trace } = repository();
  const root = temporaryFolder();
  const sandboxes = directorySandboxes({ root, place: 'test', processes });
  const sandbox = await sandboxes.open(ID, { cwd: join(path, cwd) });
  return { path, trace, root, sandboxes, sandbox, tree: join(root, ID, 'work'), worktrees: worktreesOf(sandboxes) };
}

function worktreesOf({ worktrees }: Sandboxes): Worktrees {
  return worktrees ?? expect.unreachable('there are worktrees');
}

const read = (...parts: string[]) => readFileSync(join(...parts), 'utf8');
/** Without the settings that leave traces. */
const quiet = ['-c', 'core.fsmonitor=', '-c', 'core.hooksPath=/dev/null'];

test('a conversation works in a worktree of the repository, on a branch of its own, in the directory that was named', async () => {
  const { path, sandbox, sandboxes, tree, trace } = await given({ cwd: 'sub' });
  expect(sandbox.work).toBe(join(tree, 'sub'));
  expect(read(tree, 'a.txt')).toBe('one\ntwo\nthree\n');
  expect(git(path, ...quiet, 'worktree', 'list', '--porcelain')).toContain(`worktree ${tree}\n`);
  expect(git(tree, ...quiet, 'symbolic-ref', 'HEAD')).toBe(`refs/heads/${BRANCH}`);
  expect(git(tree, ...quiet, 'status', '--porcelain')).toBe('');
  // Opened again, it is the same one, with its changes.
  write(tree, 'sub/new.txt', 'new\n');
  expect((await sandboxes.open(ID, { cwd: join(path, 'sub') })).work).toBe(join(tree, 'sub'));
  expect(await sandboxes.changes(ID, { cwd: path })).toMatchObject({
    files: [{ path: 'sub/new.txt', change: 'untracked' }],
    worktree: { directory: tree, branch: BRANCH, unmerged: 0 },
  });
  expect((await sandboxes.files(ID, { cwd: path, match: 'new' })).paths).toEqual(['sub/new.txt']);
  expect(existsSync(trace)).toBe(false);
});

test('changes are committed on its branch, and merged into the directory that was named', async () => {
  const { path, tree, worktrees, sandboxes, trace } = await given();
  write(tree, 'a.txt', 'ONE\ntwo\nthree\n');
  write(tree, 'new/c.txt', 'c\n');
  write(tree, 'ignored', 'i');
  rmSync(join(tree, 'sub/b.txt'));
  await expect(worktrees.keep(ID, { merge: true })).rejects.toMatchObject({ code: 'conflict' });
  const { commit } = await worktrees.keep(ID, { commit: 'Change it' });
  expect(git(path, ...quiet, 'log', '-1', '--format=%H %an %s', BRANCH)).toBe(`${commit} Ann Change it`);
  expect(git(tree, ...quiet, 'status', '--porcelain')).toBe('');
  expect(await sandboxes.changes(ID, { cwd: path })).toMatchObject({ files: [], worktree: { unmerged: 1 } });
  await expect(worktrees.keep(ID, { commit: 'Again' })).rejects.toMatchObject({ code: 'conflict' });

  expect(await worktrees.keep(ID, { merge: true })).toEqual({
    ...{ branch: BRANCH, commit: null, merged: commit, leftOut: [] },
  });
  expect(git(path, ...quiet, 'rev-parse', 'main')).toBe(commit);
  expect([read(path, 'a.txt'), read(path, 'new/c.txt')]).toEqual(['ONE\ntwo\nthree\n', 'c\n']);
  expect(existsSync(join(path, 'sub/b.txt'))).toBe(false);
  expect(git(path, ...quiet, 'status', '--porcelain')).toBe('');
  await expect(worktrees.keep(ID, { merge: true })).rejects.toThrow('Everything is merged already.');
  expect(existsSync(trace)).toBe(false);
});

test('commits of both sides are merged, or nothing is changed and the conflict is reported', async () => {
  const { path, tree, worktrees } = await given();
  write(path, 'other.txt', 'theirs\n');
  git(path, ...quiet, 'add', '--all');
  git(path, ...quiet, 'commit', '--quiet', '--message', 'second');
  write(path, 'a.txt', 'one\ntwo\nthree\nmine, not committed\n');
  write(tree, 'new.txt', 'new\n');
  const { merged } = await worktrees.keep(ID, { commit: 'Add', merge: true });
  expect(git(path, ...quiet, 'log', '-1', '--format=%H %p %s')).toMatch(
    new RegExp(`^${merged} \\w+ \\w+ Merge branch 'throughline/one'$`),
  );
  expect(read(path, 'new.txt')).toBe('new\n');
  expect(git(path, ...quiet, 'status', '--porcelain')).toBe('M a.txt');

  // First uncommitted changes there prevent the merge, then a conflicting commit.
  write(tree, 'a.txt', 'ONE\n');
  await expect(worktrees.keep(ID, { commit: 'Change', merge: true })).rejects.toMatchObject({
    code: 'refused',
    message: expect.stringContaining('not committed prevent the merge'),
  });
  git(path, ...quiet, 'commit', '--quiet', '--all', '--message', 'third');
  const before = git(path, ...quiet, 'rev-parse', 'HEAD');
  await expect(worktrees.keep(ID, { merge: true })).rejects.toMatchObject({
    code: 'refused',
    message: 'The commits of both sides conflict in a.txt.',
    hint: `Merge by hand: "git merge ${BRANCH}".`,
  });
  expect(git(path, ...quiet, 'rev-parse', 'HEAD')).toBe(before);
  expect(git(path, ...quiet, 'status', '--porcelain')).toBe('');
  expect(existsSync(join(path, '.git/index.lock'))).toBe(false);
});

test('discarding removes everything that is not committed, except ignored files', async () => {
  const { tree, worktrees, trace } = await given();
  write(tree, 'a.txt', 'changed');
  write(tree, 'new/deep.txt', 'new');
  write(tree, 'ignored', 'i');
  rmSync(join(tree, 'sub'), { recursive: true });
  expect(await worktrees.unsaved(ID)).toBe(3);
  await worktrees.discard(ID);
  expect(await worktrees.unsaved(ID)).toBe(0);
  expect(git(tree, ...quiet, 'status', '--porcelain')).toBe('');
  expect([read(tree, 'a.txt'), read(tree, 'sub/b.txt')]).toEqual(['one\ntwo\nthree\n', 'b\n']);
  expect([existsSync(join(tree, 'new')), existsSync(join(tree, 'ignored'))]).toEqual([false, true]);
  expect(existsSync(trace)).toBe(false);
});

test('a sandbox with uncommitted changes is not removed; unmerged commits stay on the branch', async () => {
  const { path, tree, root, worktrees, sandboxes } = await given();
  write(tree, 'new.txt', 'new');
  await expect(sandboxes.remove(ID)).rejects.toMatchObject({ code: 'refused' });
  expect(read(tree, 'new.txt')).toBe('new');
  const { commit } = await worktrees.keep(ID, { commit: 'Add' });
  await sandboxes.remove(ID);
  expect(existsSync(join(root, ID))).toBe(false);
  expect(git(path, ...quiet, 'worktree', 'list').split('\n')).toHaveLength(1);
  expect(git(path, ...quiet, 'rev-parse', BRANCH)).toBe(commit);
  // Created again, it continues from its branch.
  await sandboxes.open(ID, { cwd: path });
  expect(read(tree, 'new.txt')).toBe('new');
  await worktrees.keep(ID, { merge: true });
  write(tree, 'thrown.txt', 'away');
  await sandboxes.remove(ID, { discard: true });
  expect(git(path, ...quiet, 'branch', '--list', 'throughline/*')).toBe('');
  expect(existsSync(join(root, ID))).toBe(false);
});

test('an agent that changes its file .git does not change what we compare and commit', async () => {
  const { path, tree, sandboxes, worktrees } = await given();
  const secret = repository().path;
  write(secret, 'secret.txt', 'secret');
  rmSync(join(tree, '.git'));
  symlinkSync(join(secret, '.git'), join(tree, '.git'));
  write(tree, 'new.txt', 'new');
  const { files } = await sandboxes.changes(ID, { cwd: path });
  expect(files.map((file) => file.path)).toEqual(['new.txt']);
  const { commit } = await worktrees.keep(ID, { commit: 'Add' });
  expect(git(path, ...quiet, 'ls-tree', '-r', '--name-only', commit ?? '').split('\n')).toEqual([
    '.gitignore',
    'a.txt',
    'new.txt',
    'sub/b.txt',
  ]);
});

test('files with a git filter are not committed or merged by us', async () => {
  const { tree, worktrees, trace } = await given();
  write(tree, '.gitattributes', '*.big filter=f\nplain.big -filter\n');
  await worktrees.keep(ID, { commit: 'Name a filter' });
  write(tree, 'plain.big', 'x');
  await worktrees.keep(ID, { commit: 'Not filtered' });
  write(tree, 'x.big', 'x');
  await expect(worktrees.keep(ID, { commit: 'Filtered' })).rejects.toThrow(
    /applies to x\.big, and filters are not run/,
  );
  expect(await worktrees.unsaved(ID)).toBe(1);
  expect(existsSync(trace)).toBe(false);
});

test('a worktree whose data home was moved keeps uncommitted changes, and git records its new path', async () => {
  const { path, root, tree } = await given();
  write(tree, 'new.txt', 'unsaved\n');
  const moved = join(temporaryFolder(), 'moved');
  renameSync(root, moved);
  const sandboxes = directorySandboxes({ root: moved, place: 'test', processes });
  await expect(sandboxes.remove(ID)).rejects.toMatchObject({ code: 'refused' });
  const { work } = await sandboxes.open(ID, { cwd: path });
  expect(read(work, 'new.txt')).toBe('unsaved\n');
  expect(git(path, ...quiet, 'worktree', 'list', '--porcelain')).toContain(`worktree ${work}\n`);
  expect(git(work, ...quiet, 'status', '--porcelain')).toBe('?? new.txt');
  await worktreesOf(sandboxes).keep(ID, { commit: 'Add it', merge: true });
  expect(read(path, 'new.txt')).toBe('unsaved\n');
});

test('a copy of a worktree is not used beside the original, and deleting the copy does not change the original', async () => {
  const { path, root, tree, sandboxes } = await given();
  write(tree, 'new.txt', 'unsaved\n');
  const copied = join(temporaryFolder(), 'copied');
  cpSync(root, copied, { recursive: true });
  const copies = directorySandboxes({ root: copied, place: 'test', processes });
  const refused = { code: 'refused', message: expect.stringContaining(`is a copy of the worktree ${tree}`) };
  await expect(copies.open(ID, { cwd: path })).rejects.toMatchObject(refused);
  await expect(copies.remove(ID)).rejects.toMatchObject(refused);
  expect(read(copied, ID, 'work', 'new.txt')).toBe('unsaved\n');
  await copies.remove(ID, { discard: true });
  expect(existsSync(join(copied, ID))).toBe(false);
  expect(await sandboxes.changes(ID, { cwd: path })).toMatchObject({ files: [{ path: 'new.txt' }] });
});

test('a worktree whose repository was moved keeps its files, and works again when the repository is back', async () => {
  const { path, tree, sandboxes } = await given();
  write(tree, 'new.txt', 'unsaved\n');
  const moved = join(temporaryFolder(), 'moved');
  renameSync(path, moved);
  const refused = { code: 'refused', hint: expect.stringContaining('move it back') };
  await expect(sandboxes.changes(ID, { cwd: path })).rejects.toMatchObject(refused);
  await expect(sandboxes.remove(ID)).rejects.toMatchObject(refused);
  expect(read(tree, 'new.txt')).toBe('unsaved\n');
  renameSync(moved, path);
  expect(await sandboxes.changes(ID, { cwd: path })).toMatchObject({ files: [{ path: 'new.txt' }] });
});

test('a directory without a repository, or without a commit, is refused, and nothing is created', async () => {
  const root = join(temporaryFolder(), 'sandboxes');
  const { check } = worktreesOf(directorySandboxes({ root, place: 'test', processes }));
  const empty = temporaryFolder();
  await expect(check(empty)).rejects.toMatchObject({
    code: 'refused',
    message: expect.stringContaining('not in a git'),
  });
  git(empty, 'init', '--quiet');
  await expect(check(empty)).rejects.toMatchObject({ code: 'refused', message: expect.stringContaining('no commit') });
  await check(repository().path);
  expect(existsSync(root)).toBe(false);
});

test('in bubblewrap git shows the history, and cannot commit; settings and hooks of the repository are not there', async (context) => {
  const why = whyNoBubblewrap();
  if (why !== null) context.skip(why);
  const { path, trace } = repository();
  appendFileSync(join(path, '.git/config'), '[remote "origin"]\nurl = https://token@example.org/\n');
  const [root, main] = [temporaryFolder(), join(path, '.git')];
  const sandboxes = isolatedSandboxes(root, { network: 'none' });
  const sandbox = await sandboxes.open(ID, { cwd: join(path, 'sub') });
  const run = async (script: string) => {
    const child = await sandbox.spawn(['/bin/sh', '-c', script], { env: {} });
    child.stdin.end();
    const [out, said, { code }] = await Promise.all([textOf(child.stdout), textOf(child.stderr), child.exited]);
    return { out: out.trim(), said, code };
  };
  expect(
    await run('git log --format=%s; echo new > ../new.txt; git status --porcelain; git diff --stat'),
  ).toMatchObject({
    out: 'first\n?? new.txt',
    code: 0,
  });
  expect((await run('git -c user.name=x -c user.email=x commit --all --allow-empty -m x')).code).not.toBe(0);
  const names = ['config', 'hooks/pre-commit', 'refs/heads/main', 'HEAD', 'packed-refs', 'hooks/new', 'objects/new'];
  const outside = () => names.map((name) => (existsSync(join(main, name)) ? read(main, name) : null));
  const before = outside();
  for (const name of names) await run(`mkdir -p ${main}/hooks; echo x > ${main}/${name}`);
  expect(outside()).toEqual(before);
  for (const name of ['refs/heads/main', 'HEAD', 'objects/new', `worktrees/work/HEAD`])
    expect((await run(`echo x > ${main}/${name}`)).said, name).toContain('Read-only file system');
  expect((await run('rm ../.git')).code).not.toBe(0);
  expect((await run('echo x > ../.git')).code).not.toBe(0);
  // Each program has its own mounts: files that an earlier one created outside of them are gone.
  const seen = await run(`ls -A ${main} ${path}; cat ${main}/config ${main}/hooks/* ${path}/a.txt`);
  expect(seen.out).not.toMatch(/config|hooks|a\.txt/);
  expect(existsSync(trace)).toBe(false);
  await worktreesOf(sandboxes).keep(ID, { commit: 'Add', merge: true });
  expect(read(path, 'new.txt')).toBe('new\n');
});

test('a commit leaves out files that are too large, and names them; they prevent no merge, and are kept', async () => {
  const { path, tree, worktrees } = await given();
  write(path, 'empty', '');
  const large = { path: 'disk\n1.img', bytes: 200e9 };
  write(tree, large.path, '');
  truncateSync(join(tree, large.path), large.bytes);
  await expect(worktrees.keep(ID, { commit: 'Only large' })).rejects.toMatchObject({
    ...{ code: 'refused', message: expect.stringContaining('"disk\\n1.img" (200.0 GB)') },
  });
  write(tree, 'small.txt', 'small\n');
  truncateSync(join(tree, 'a.txt'), 300e9);
  const leftOut = [{ path: 'a.txt', bytes: 300e9 }, large];
  expect(await worktrees.keep(ID, { commit: 'Small', merge: true })).toMatchObject({ leftOut });
  expect(git(path, ...quiet, 'show', '--name-only', '--format=%s', 'HEAD').split('\n')).toEqual([
    'Small',
    '',
    'small.txt',
  ]);
  expect(read(path, 'a.txt')).toBe('one\ntwo\nthree\n');
  expect(existsSync(join(tree, large.path))).toBe(true);
  expect(await worktrees.unsaved(ID)).toBe(2);
  // Other changes that are not committed still prevent it.
  write(tree, 'other.txt', 'other\n');
  await expect(worktrees.keep(ID, { merge: true })).rejects.toMatchObject({
    message: expect.stringMatching(/not committed/),
  });
});
