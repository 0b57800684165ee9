import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { git, makeRepository, write } from '../../../test/git.ts';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import { projectOf } from './repository.ts';

test('a directory in a linked worktree counts to the same directory of its repository, and every other one to itself', async () => {
  const base = temporaryFolder();
  const repository = makeRepository(join(base, 'repository'));
  write(repository, 'packages/a/file', 'one\n');
  git(repository, 'add', '--all');
  git(repository, 'commit', '-q', '-m', 'second');
  const linked = join(base, 'elsewhere', 'linked');
  git(repository, 'worktree', 'add', '-q', linked);
  git(repository, 'clone', '-q', '--bare', '.', join(base, 'bare.git'));
  git(join(base, 'bare.git'), 'worktree', 'add', '-q', join(base, 'of-bare'));
  git(repository, 'clone', '-q', '--separate-git-dir', join(base, 'separate'), '.', join(base, 'apart'));
  mkdirSync(join(base, 'plain'));
  for (const [path, project] of [
    [linked, repository],
    [join(linked, 'packages', 'a'), join(repository, 'packages', 'a')],
    [join(base, 'of-bare'), join(base, 'bare.git')],
  ] as const)
    expect(await projectOf(path)).toBe(project);
  for (const own of [repository, join(repository, 'packages'), join(base, 'plain'), join(base, 'apart'), base, '/'])
    expect(await projectOf(own)).toBe(own);
});

test('what else is called .git counts for nothing', async () => {
  const base = temporaryFolder();
  for (const [name, content] of [
    ['empty', ''],
    ['long', `gitdir: /${'x'.repeat(5_000)}/.git/worktrees/a`],
    ['other', 'gitdir: ../.git/modules/a'],
  ] as const) {
    mkdirSync(join(base, name));
    writeFileSync(join(base, name, '.git'), content);
    expect(await projectOf(join(base, name)), name).toBe(join(base, name));
  }
  mkdirSync(join(base, 'link'));
  symlinkSync('/dev/zero', join(base, 'link', '.git'));
  expect(await projectOf(join(base, 'link'))).toBe(join(base, 'link'));
});
