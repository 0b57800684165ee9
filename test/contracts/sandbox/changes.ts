import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ThroughlineError } from '../../../src/core/errors.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import type { Around } from './around.ts';

/** Git without the settings of a user or the machine. */
const GIT = `export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
git() { command git -c user.name=a -c user.email=a@example.org -c safe.directory='*' "$@"; }`;
const COMMIT = `${GIT}; git init -q; printf 'one\\n' > a; printf 'x\\n' > b; git add .; git commit -qm one`;

/** Settings and hooks that each make git run a program. */
const TRAPS = `mkdir .git/hooks 2>/dev/null; printf '#!/bin/sh\\ntouch "%s/ran"\\ncat\\n' "$PWD" > .git/evil; chmod +x .git/evil
evil=$PWD/.git/evil
for hook in post-index-change reference-transaction post-checkout; do cp .git/evil .git/hooks/$hook; done
for name in core.fsmonitor core.pager diff.external diff.evil.command diff.evil.textconv filter.evil.clean filter.evil.process core.sshCommand; do
  git config $name "$evil"
done
git config alias.diff "!$evil"; git config include.path "$PWD/.git/more"; printf '[core]\\n\\tattributesFile = %s\\n' "$PWD/.git/attr" > .git/more
printf '* filter=evil diff=evil\\n' > .git/attr`;

/** What `Sandboxes.changes` promises. */
export function changesContract(around: () => Around): void {
  test('shows what an agent changed since its last commit, and runs nothing that its repository names', async () => {
    const { sandboxes, sandbox, run } = around();
    // This shows that the trap works: git itself runs it.
    await run(`${COMMIT}; ${TRAPS}; printf 'two\\n' > a; git status >/dev/null; [ -e ran ] || exit 9; rm ran b
      mkdir -p 'c d'; printf 'new\\n' > 'c d/ä'; ln -s /etc/passwd link`);
    const { head, files, more } = await sandboxes.changes('one', { cwd: null });
    expect([head, more]).toEqual([expect.stringMatching(/^[0-9a-f]{40}$/), 0]);
    expect(files.map(({ path, change, added, removed }) => [path, change, added, removed])).toEqual([
      ['a', 'modified', 1, 1],
      ['b', 'deleted', 0, 1],
      ['c d/ä', 'untracked', 1, 0],
      ['link', 'untracked', null, null],
    ]);
    expect(files[0]?.patch).toContain('-one\n+two\n');
    expect(await (await sandbox.folder(sandbox.work)).stat('ran')).toBeNull();
  });

  test('shows no file that the agent cannot read, whatever is in its repository', async (context) => {
    const { given, sandboxes, run } = around();
    if (!given.isolated) context.skip('its agents can read what we can');
    const [outside, secret] = [temporaryFolder(), `secret-${randomUUID()}`];
    writeFileSync(join(outside, 'a'), secret);
    const { work: theirs } = await sandboxes.open('two', { cwd: null });
    execFileSync('/bin/sh', ['-c', `${COMMIT}; echo ${secret} > a; git commit -qam two`], { cwd: theirs });
    const head = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: theirs, encoding: 'utf8' });
    const repositories = [
      `git init -q; printf x > a; git add .; git commit -qm one; git config core.worktree '${outside}'`,
      `echo 'gitdir: ${theirs}/.git' > .git`,
      `ln -s '${theirs}/.git' .git`,
      `git init -q; mkdir -p .git/objects/info; echo '${theirs}/.git/objects' > .git/objects/info/alternates; echo ${head.trim()} > .git/HEAD`,
      `git init -q; ln -s '${outside}' folder; ln -s '${outside}/a' file`,
    ];
    for (const repository of given.slowStarts ? repositories.slice(0, 1) : repositories) {
      await run(`${GIT}; rm -rf .git *; ${repository}`);
      const shown = await sandboxes.changes('one', { cwd: null }).then(
        (changes) => JSON.stringify(changes),
        (error: unknown) => (error instanceof ThroughlineError ? error.code : String(error)),
      );
      expect([shown.includes(secret), shown]).toEqual([false, expect.stringMatching(/^refused$|^\{"head":/)]);
    }
  });

  test('compares a directory with the repository above it, which the agent does not see', async (context) => {
    const { given, sandboxes } = around();
    await expect(sandboxes.changes('one', { cwd: null })).rejects.toMatchObject({ code: 'not_found' });
    if (!given.isolated) context.skip('its agents see all directories');
    const project = temporaryFolder();
    execFileSync('/bin/sh', ['-c', `mkdir sub; cd sub; echo x > s; cd ..; ${COMMIT}; echo y > sub/s`], {
      cwd: project,
    });
    const cwd = join(project, 'sub');
    const shown = async () =>
      (await sandboxes.changes('three', { cwd })).files.map(({ path, change }) => [path, change]);
    expect(await shown()).toEqual([['s', 'modified']]);
    if (given.slowStarts) return;
    // If the agent makes its own repository there, that one counts.
    execFileSync('/bin/sh', ['-c', `${GIT}; git init -q`], { cwd });
    expect(await shown()).toEqual([['s', 'untracked']]);
  });

  test('compares a worktree with its last commit', async (context) => {
    const { given, sandboxes } = around();
    if (sandboxes.worktrees === undefined) context.skip('there are no worktrees on other machines');
    if (!given.isolated) context.skip('src/sandboxes/directory/worktree.test.ts has it');
    const project = temporaryFolder();
    execFileSync('/bin/sh', ['-c', COMMIT], { cwd: project });
    const { work } = await sandboxes.open('tree-one', { cwd: project });
    writeFileSync(join(work, 'a'), 'two\n');
    const { files, worktree } = await sandboxes.changes('tree-one', { cwd: project });
    expect(files.map(({ path, change, added }) => [path, change, added])).toEqual([['a', 'modified', 1]]);
    expect(worktree).toEqual({ directory: work, branch: 'throughline/one', unmerged: 0 });
    await expect(sandboxes.remove('tree-one')).rejects.toMatchObject({ code: 'refused' });
    await sandboxes.remove('tree-one', { discard: true });
  });
}
