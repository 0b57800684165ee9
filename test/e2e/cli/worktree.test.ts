import { existsSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { git, makeRepository } from '../../git.ts';
import { CliHome } from './process.ts';

test('changes of "send --worktree" are listed, committed and merged, discarded, and erased with their branch', async () => {
  const home = new CliHome();
  onTestFinished(() => home.remove());
  const cwd = makeRepository(join(home.path, 'repository'));
  const sent = await home.start(['send', 'chat', '/tool write new.txt', '--worktree'], { cwd }).ended;
  expect([sent.code, sent.stderr.includes('error')]).toEqual([0, false]);
  expect(existsSync(join(cwd, 'new.txt'))).toBe(false);
  const shown = await home.run('changes', 'chat');
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringMatching(/^new\.txt {2}untracked, /) });
  expect(shown.stderr).toMatch(/The worktree is .*tree-.*\/work, on the branch throughline\//);
  const merged = await home.ok('changes', 'chat', '--commit', 'Add a file', '--merge');
  expect(merged).toMatch(
    /^Committed \w{10} on throughline\/\S+\. Merged: the directory of the conversation is at \w{10}\.\n$/,
  );
  expect(git(cwd, 'log', '-1', '--format=%s')).toBe('Add a file');
  await home.ok('send', 'chat', '/tool write more.txt');
  expect(await home.run('changes', 'chat', '--discard')).toMatchObject({
    ...{ code: 2, stderr: expect.stringContaining('Add --yes to confirm.') },
  });
  expect(await home.run('erase', 'chat', '--sandbox', '--yes')).toMatchObject({
    ...{ code: 2, stderr: expect.stringContaining('not committed, in a file') },
  });
  await home.ok('changes', 'chat', '--discard', '--yes');
  await home.ok('erase', 'chat', '--sandbox', '--yes');
  expect(git(cwd, 'branch', '--list', 'throughline/*')).toBe('');
});

test('names of files add no lines to what "changes" prints, and a commit names the file that it leaves out', async () => {
  const home = new CliHome();
  onTestFinished(() => home.remove());
  const cwd = makeRepository(join(home.path, 'repository'));
  await home.start(['send', 'chat', '/tool write new.txt', '--worktree'], { cwd }).ended;
  const [{ worktree }] = await home.lines('changes', 'chat');
  const forged = 'x\ndiff --git a/safe b/safe\nok.txt';
  writeFileSync(join(worktree.directory, 'x\nsafe  untracked, +1 -0'), 'one\n');
  writeFileSync(join(worktree.directory, forged.replaceAll('/', '_')), 'one\n');
  const large = join(worktree.directory, 'large\n.img');
  writeFileSync(large, '');
  truncateSync(large, 200e9);
  const lines = (await home.ok('changes', 'chat', '--patch')).split('\n');
  expect(lines.filter((line) => /^(safe|diff --git a.safe|ok)/.test(line))).toEqual([]);
  expect(lines).toContain('"x\\nsafe  untracked, +1 -0"  untracked, +1 -0');
  expect(lines).toContain('"large\\n.img"  untracked');
  const committed = await home.run('changes', 'chat', '--commit', 'Small ones', '--merge');
  expect(committed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Committed .* Merged: /) });
  expect(committed.stderr).toContain('Left out, because it is too large: "large\\n.img" (200.0 GB).\n');
});
