import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { git, makeRepository } from '../../../test/git.ts';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import { hasCode } from '../../core/errors.ts';
import type { HostProcesses } from '../../ports/processes.ts';
import { directorySandboxes } from './directory-sandboxes.ts';

const NO_PROCESSES = {} as HostProcesses;

function chooser(...choosable: string[]) {
  const root = join(temporaryFolder(), 'sandboxes');
  const sandboxes = directorySandboxes({ root, place: 'here', processes: NO_PROCESSES, choosable });
  return async (path: string | null = null, hidden = false) => {
    if (sandboxes.directories === undefined) throw new Error('there is no picker');
    return sandboxes.directories({ path, hidden });
  };
}

async function refusal(asked: Promise<unknown>): Promise<string> {
  const error = await asked.then(
    () => null,
    (cause: unknown) => cause,
  );
  expect(hasCode(error, 'refused'), String(error)).toBe(true);
  return (error as Error).message;
}

test('lists the directories below a root by name, and links as links; hidden ones only when they are asked for', async () => {
  const base = temporaryFolder();
  const [root, other] = [join(base, 'src'), join(base, 'other')];
  for (const path of [join(root, 'part 10', 'deep'), join(root, 'part 9'), join(root, '.hidden'), other]) {
    mkdirSync(path, { recursive: true });
  }
  writeFileSync(join(root, 'file'), '');
  makeRepository(join(root, 'a'));
  symlinkSync('part 9', join(root, 'inside'));
  symlinkSync(other, join(root, 'leads out'));
  symlinkSync('file', join(root, 'to a file'));
  symlinkSync('nowhere', join(root, 'broken'));
  symlinkSync('self', join(root, 'self'));
  const list = chooser(root);
  const plain = { link: null, outside: false, repository: false };
  const entry = (name: string, more: object = {}) => ({ name, path: join(root, name), ...plain, ...more });
  const seen = [
    entry('a', { repository: true }),
    entry('inside', { link: 'part 9' }),
    entry('leads out', { link: other, outside: true }),
    entry('part 9'),
    entry('part 10'),
  ];
  expect(await list()).toEqual({
    ...{ path: root, above: null, roots: [root], home: homedir(), repository: null, directories: seen, more: false },
  });
  expect((await list(root, true)).directories).toContainEqual(entry('.hidden'));
  expect((await list(join(root, 'inside'))).path).toBe(join(root, 'part 9'));
  expect(await list(`${root}/a/../part 10/`)).toMatchObject({ above: root, directories: [{ name: 'deep' }] });
});

test('what is outside of the roots is refused, also through a link, and without telling whether it exists', async () => {
  const base = temporaryFolder();
  const root = join(base, 'src');
  for (const name of ['src', 'src-2', 'other']) mkdirSync(join(base, name));
  symlinkSync(join(base, 'other'), join(root, 'leads out'));
  writeFileSync(join(root, 'file'), '');
  const list = chooser(root);
  const outside = (path: string) => `${path} is not below ${root}: it cannot be chosen here.`;
  for (const path of [
    base,
    '/',
    join(base, 'other'),
    join(base, 'src-2'),
    join(base, 'nowhere'),
    join(root, 'leads out'),
  ])
    expect(await refusal(list(path))).toBe(outside(path));
  expect(await refusal(list(`${root}/../other`))).toBe(outside(join(base, 'other')));
  expect(await refusal(list(join(root, 'nowhere')))).toMatch(/there is no such directory/);
  expect(await refusal(list(join(root, 'file')))).toMatch(/not a directory/);
  expect(await refusal(chooser(join(base, 'nowhere'))())).toBe('No directories can be chosen here.');
  expect(await refusal(chooser()())).toBe('No directories can be chosen here.');
  expect((await chooser('/')(base)).above).toBe(join(base, '..'));
});

test('a root may be a link, and each of several roots can be listed', async () => {
  const base = temporaryFolder();
  mkdirSync(join(base, 'disk', 'src'), { recursive: true });
  mkdirSync(join(base, 'second'));
  symlinkSync('disk', join(base, 'home'));
  const list = chooser(join(base, 'home'), join(base, 'second'));
  const roots = [join(base, 'disk'), join(base, 'second')];
  expect(await list()).toMatchObject({ path: roots[0], roots, directories: [{ path: join(base, 'disk', 'src') }] });
  expect(await list(join(base, 'home', 'src'))).toMatchObject({ path: join(base, 'disk', 'src'), above: roots[0] });
  expect(await list(join(base, 'second'))).toMatchObject({ path: roots[1], above: null });
});

test('a repository says its branch, and why there can be no worktree', async () => {
  const root = temporaryFolder();
  const list = chooser(root);
  const repository = makeRepository(join(root, 'repository'));
  mkdirSync(join(repository, 'part'));
  const found = { path: repository, branch: 'main', noWorktree: null };
  expect((await list(join(repository, 'part'))).repository).toEqual(found);
  git(repository, 'worktree', 'add', '-q', '-b', 'fix/one', join(root, 'linked'));
  expect((await list(join(root, 'linked'))).repository).toEqual({
    ...{ path: join(root, 'linked'), branch: 'fix/one', noWorktree: null },
  });
  git(repository, 'checkout', '-q', '--detach');
  expect((await list(repository)).repository).toEqual({ ...found, branch: null });
  git(root, 'init', '-q', '-b', 'new', 'empty');
  expect((await list(join(root, 'empty'))).repository).toEqual({
    ...{ path: join(root, 'empty'), branch: 'new', noWorktree: `${join(root, 'empty')} has no commit yet.` },
  });
  // A repository whose directory is above the root is not shown.
  expect((await chooser(join(repository, 'part'))()).repository).toBeNull();
});

test('a directory with many others is cut, and says so', async () => {
  const root = temporaryFolder();
  for (let i = 0; i < 1_001; i += 1) mkdirSync(join(root, `d${i}`));
  const { directories, more } = await chooser(root)();
  expect([directories.length, more]).toEqual([1_000, true]);
  expect(directories.at(-1)?.name).toBe('d999');
});

test('a directory that cannot be read is refused', async (context) => {
  if (process.getuid?.() === 0) context.skip('root can read every directory');
  const root = temporaryFolder();
  mkdirSync(join(root, 'closed'));
  chmodSync(join(root, 'closed'), 0);
  expect(await refusal(chooser(root)(join(root, 'closed')))).toMatch(/permission denied/);
});
