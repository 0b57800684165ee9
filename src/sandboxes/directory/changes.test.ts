import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { GIT_ENV, git, write } from '../../../test/git.ts';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import { changesIn } from './changes.ts';
import { commitOf } from './worktree.ts';

function repository(files: Record<string, string>, ...init: string[]): string {
  const path = temporaryFolder();
  git(path, 'init', '--quiet', ...init);
  for (const [name, text] of Object.entries(files)) write(path, name, text);
  git(path, 'add', '--all');
  git(path, 'commit', '--quiet', '--message', 'one');
  return path;
}

const short = async (path: string, within: string | null = null) =>
  (await changesIn(path, within)).files.map(({ path: name, change, added, removed }) => [name, change, added, removed]);

test('differences from the last commit are listed by file, staged or not, with untracked files', async () => {
  const path = repository({
    'a.txt': 'one\ntwo\n',
    'b.txt': 'b\n',
    'c.bin': 'a\0b',
    'same.txt': '=\n',
    '.gitignore': 'out\n',
  });
  write(path, 'a.txt', 'one\nthree\nfour\n');
  rmSync(join(path, 'b.txt'));
  write(path, 'c.bin', 'a\0c');
  write(path, 'new dir/ä "quoted".md', 'hello\n');
  write(path, 'out', 'ignored');
  write(path, 'local', 'excluded');
  write(path, '.git/info/exclude', 'local\n');
  write(path, 'staged.txt', 'staged\n');
  git(path, 'add', 'staged.txt');
  symlinkSync('/etc/passwd', join(path, 'link'));
  expect(await short(path)).toEqual([
    ['a.txt', 'modified', 2, 1],
    ['b.txt', 'deleted', 0, 1],
    ['c.bin', 'modified', null, null],
    ['link', 'untracked', null, null],
    ['new dir/ä "quoted".md', 'untracked', 1, 0],
    ['staged.txt', 'added', 1, 0],
  ]);
  const { head, files, more } = await changesIn(path, null);
  expect([head, more]).toEqual([git(path, 'rev-parse', 'HEAD'), 0]);
  expect(files[0]?.patch).toContain('@@ -1,2 +1,3 @@\n one\n-two\n+three\n+four\n');
  expect(JSON.stringify(files)).not.toContain('root:');
  expect(await short(join(path, 'new dir'))).toEqual([['ä "quoted".md', 'untracked', 1, 0]]);
});

test('names of files are quoted in patches as git quotes them, so that no name adds a line', async () => {
  const names = [
    'a\nb.txt',
    'quo"te',
    'back\\slash',
    'two words',
    'tab\t',
    'bell\u0007',
    'del\u007f',
    'ä.txt',
    'plain',
  ];
  const path = repository({ first: 'one\n' });
  for (const name of names) write(path, name, 'x\n');
  const headers = (patch: string) => patch.split('\n').filter((line) => /^(diff|\+\+\+) /.test(line));
  const { files } = await changesIn(path, null);
  expect(files).toHaveLength(names.length);
  git(path, 'add', '--all');
  for (const { path: name, patch } of files) {
    const theirs = git(path, '-c', 'core.quotePath=false', 'diff', '--cached', '--', `:(literal)${name}`);
    expect(headers(patch ?? '')).toEqual(headers(theirs));
  }
});

test('the patches of untracked files can be applied by git', async () => {
  const path = repository({ first: 'one\n' });
  const before = git(path, 'rev-parse', 'HEAD');
  for (const name of ['-rf', 'two words', 'a\nb', 'dir/ä']) write(path, name, `${name.replace('\n', ' ')}\n`);
  write(path, 'empty', '');
  const { files } = await changesIn(path, null);
  const patch = join(temporaryFolder(), 'patch');
  writeFileSync(patch, files.map((file) => file.patch).join(''));
  git(path, 'add', '--all');
  const tree = git(path, 'write-tree');
  git(path, 'reset', '--quiet', '--hard', before);
  git(path, 'apply', '--index', patch);
  expect(git(path, 'write-tree')).toBe(tree);
});

test('large files are listed without their content, which is not read, and the others have their patches', async () => {
  const path = repository({
    empty: '',
    'a.txt': 'one\n',
    'disk.img': 'x',
    'b/inner.txt': 'x\n',
    'z.txt': 'z\n',
  });
  for (const name of ['empty', 'disk.img']) truncateSync(join(path, name), 200e9);
  rmSync(join(path, 'b'), { recursive: true });
  write(path, 'b', '');
  truncateSync(join(path, 'b'), 200e9);
  write(path, 'a.txt', 'two\n');
  write(path, 'z.txt', 'y\n');
  write(path, 'new.img', '');
  truncateSync(join(path, 'new.img'), 200e9);
  expect(await short(path)).toEqual([
    ['a.txt', 'modified', 1, 1],
    ['b', 'untracked', null, null],
    ['b/inner.txt', 'deleted', 0, 1],
    ['disk.img', 'modified', null, null],
    ['empty', 'modified', null, null],
    ['new.img', 'untracked', null, null],
    ['z.txt', 'modified', 1, 1],
  ]);
});

test('a repository without commits, with long hashes, and another working tree of one', async () => {
  const empty = temporaryFolder();
  git(empty, 'init', '--quiet');
  write(empty, 'a', 'x\n');
  expect(await changesIn(empty, null)).toMatchObject({ head: null, files: [{ path: 'a', change: 'untracked' }] });
  const long = repository({ a: 'x\n' }, '--object-format=sha256');
  write(long, 'a', 'y\n');
  expect(await short(long)).toEqual([['a', 'modified', 1, 1]]);
  const other = join(temporaryFolder(), 'tree');
  git(long, 'worktree', 'add', '--quiet', other);
  write(other, 'a', 'z\n');
  expect(await short(other)).toEqual([['a', 'modified', 1, 1]]);
});

test('a change of the same size in the same second as the commit is still found later', async () => {
  const untilSecond = () => delay(1_000 - (Date.now() % 1_000));
  await untilSecond();
  const path = repository({ a: 'x\n' });
  write(path, 'a', 'y\n');
  await untilSecond();
  expect(await short(path)).toEqual([['a', 'modified', 1, 1]]);
});

test('no program that the repository configures is run, and the repository is not changed', async () => {
  const path = repository({ 'a.txt': 'one\n', '.gitattributes': '* filter=evil diff=evil\n', 'sub/x': 'x\n' });
  const [ran, evil] = [join(temporaryFolder(), 'ran'), join(path, 'evil')];
  write(path, 'evil', `#!/bin/sh\necho "$0 $*" >> ${ran}\ncat\n`);
  chmodSync(evil, 0o755);
  mkdirSync(join(path, '.git/hooks'), { recursive: true });
  for (const hook of [
    'post-index-change',
    'fsmonitor-watchman',
    'query-watchman',
    'post-checkout',
    'reference-transaction',
  ]) {
    writeFileSync(join(path, '.git/hooks', hook), readFileSync(evil));
    chmodSync(join(path, '.git/hooks', hook), 0o755);
  }
  for (const name of [
    ...['core.fsmonitor', 'core.pager', 'pager.diff', 'diff.external', 'diff.evil.command', 'diff.evil.textconv'],
    ...[
      'filter.evil.clean',
      'filter.evil.smudge',
      'filter.evil.process',
      'core.sshCommand',
      'core.askPass',
      'gpg.program',
    ],
    ...[
      'interactive.diffFilter',
      'core.alternateRefsCommand',
      'credential.helper',
      'core.gitProxy',
      'alias.rev-parse',
      'alias.diff',
    ],
  ]) {
    git(path, 'config', name, name.startsWith('alias') ? `!${evil}` : evil);
  }
  git(path, 'config', 'remote.origin.url', `ext::${evil}`);
  git(path, 'config', 'remote.origin.promisor', 'true');
  git(path, 'config', 'protocol.allow', 'always');
  git(path, 'config', 'core.repositoryformatversion', '1');
  git(path, 'config', 'extensions.partialClone', 'origin');
  rmSync(ran, { force: true });
  write(path, 'a.txt', 'two\n');
  const before = readFileSync(join(path, '.git/index'));
  // The trap works: git itself runs it.
  execFileSync('git', ['diff', '--no-ext-diff', '--no-textconv', 'HEAD'], { cwd: path, env: GIT_ENV, stdio: 'ignore' });
  expect(existsSync(ran)).toBe(true);
  rmSync(ran);
  expect(await short(path)).toEqual([
    ['a.txt', 'modified', 1, 1],
    ['evil', 'untracked', 3, 0],
  ]);
  expect(existsSync(ran)).toBe(false);
  expect(readFileSync(join(path, '.git/index')).equals(before)).toBe(true);
});

test('a repository whose settings name another working tree shows nothing of that folder', async () => {
  const [path, elsewhere] = [repository({ a: 'x\n' }), temporaryFolder()];
  write(elsewhere, 'a', 'secret\n');
  git(path, 'config', 'core.worktree', elsewhere);
  await expect(changesIn(path, null)).rejects.toMatchObject({ code: 'not_found' });
});

test.each(['ext', 'file', 'ssh'])('an object that is missing is not fetched by %s', async (protocol) => {
  const path = repository({ a: 'x\n' });
  const [ran, evil] = [join(temporaryFolder(), 'ran'), join(path, 'evil')];
  write(path, 'evil', `#!/bin/sh\necho "$0" >> ${ran}\n`);
  chmodSync(evil, 0o755);
  const url = { ext: `ext::${evil}`, file: temporaryFolder(), ssh: 'ssh://localhost/x' }[protocol] ?? '';
  const settings = {
    ...{ 'remote.origin.url': url, 'remote.origin.promisor': 'true', 'remote.origin.uploadpack': evil },
    ...{ 'core.sshCommand': evil, 'protocol.allow': 'always', 'core.repositoryformatversion': '1' },
    'extensions.partialClone': 'origin',
  };
  for (const [name, value] of Object.entries(settings)) git(path, 'config', name, value);
  const head = git(path, 'rev-parse', 'HEAD');
  rmSync(join(path, '.git/objects', head.slice(0, 2), head.slice(2)));
  // The trap works: git itself runs it.
  expect(() => execFileSync('git', ['cat-file', '-t', 'HEAD'], { cwd: path, env: GIT_ENV, stdio: 'ignore' })).toThrow();
  expect(existsSync(ran)).toBe(true);
  rmSync(ran);
  await expect(changesIn(path, null)).rejects.toMatchObject({ code: 'refused' });
  expect(await commitOf(join(path, '.git'), 'HEAD', AbortSignal.timeout(60_000))).toBeNull();
  expect(existsSync(ran)).toBe(false);
});

test('a missing repository, or one that begins above, is reported; an unreadable one is refused', async () => {
  const path = repository({ a: 'x\n' });
  mkdirSync(join(path, 'work'));
  await expect(changesIn(temporaryFolder(), null)).rejects.toMatchObject({
    code: 'not_found',
    hint: expect.stringContaining('cwd'),
  });
  await expect(changesIn(join(path, 'work'), join(path, 'work'))).rejects.toMatchObject({ code: 'not_found' });
  expect(await changesIn(join(path, 'work'), null)).toMatchObject({ files: [] });
  writeFileSync(join(path, '.git/index'), 'broken');
  await expect(changesIn(path, null)).rejects.toMatchObject({
    code: 'refused',
    hint: expect.stringContaining('index'),
  });
});

test.each(['index', 'info/exclude'])('a pipe in the place of %s does not block us', async (name) => {
  const path = repository({ a: 'x\n' });
  rmSync(join(path, '.git', name), { force: true });
  execFileSync('mkfifo', [join(path, '.git', name)]);
  await expect(changesIn(path, null)).rejects.toMatchObject({
    code: 'refused',
    hint: expect.stringContaining('is not a file'),
  });
});
