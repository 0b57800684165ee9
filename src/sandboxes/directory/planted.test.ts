import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { textOf } from '../../../test/contracts/sandbox/around.ts';
import { isolatedSandboxes, whyNoBubblewrap } from '../../../test/contracts/sandbox/bubblewrap-given.ts';
import { git, write } from '../../../test/git.ts';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import type { OpenSandbox, Sandboxes } from '../../ports/sandbox.ts';

/*
 * An isolated agent can write to the repository that we read with git: to its files, and, if it works in the repository itself and not in a
 * worktree, to the git directory. Here it tries to make git read, write or run something outside of the sandbox.
 */

function repository(files: Record<string, string>): string {
  const path = temporaryFolder();
  git(path, 'init', '--quiet', '--initial-branch', 'main');
  for (const [name, text] of Object.entries({ 'a.txt': 'one\n', ...files })) write(path, name, text);
  git(path, 'add', '--all');
  git(path, 'commit', '--quiet', '--message', 'first');
  git(path, 'config', 'user.name', 'Ann');
  git(path, 'config', 'user.email', 'ann@example.org');
  return path;
}

/** A folder that no sandbox sees, with a file `file`. */
function secretFolder(): { path: string; secret: string } {
  const [path, secret] = [temporaryFolder(), `secret-${randomUUID()}`];
  write(path, 'file', `${secret}\n`);
  return { path, secret };
}

const TREE = 'tree-one';

async function run(sandbox: OpenSandbox, script: string): Promise<string> {
  const child = await sandbox.spawn(['/bin/sh', '-c', script], { env: {} });
  child.stdin.end();
  const [out, said] = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
  await child.exited;
  return out + said;
}

const worktreesOf = ({ worktrees }: Sandboxes) => worktrees ?? expect.unreachable('there are worktrees');
const shownBy = (work: Promise<unknown>) => work.then(JSON.stringify, (error: Error) => String(error));

beforeEach((context) => {
  const why = whyNoBubblewrap();
  if (why !== null) context.skip(why);
});

describe('an agent that runs while its files are compared', () => {
  /** Git waits at the pipe after it has listed all files, and before it reads them. Then the folder is replaced. */
  const exchange = (to: string, state: string) => `rm -f p/.gitattributes; mkfifo p/.gitattributes
echo changed > p/x; echo changed > z/file; echo ready
for i in 1 2 3 4 5 6; do
  exec 3> p/.gitattributes; mv z z.away; ln -s '${to}' z; touch '${state}/exchanged'; exec 3>&-
  sleep 0.2; rm z; mv z.away z
done`;

  const attacked = async (sandbox: OpenSandbox, to: string, changes: () => Promise<unknown>) => {
    const child = await sandbox.spawn(['/bin/sh', '-c', exchange(to, sandbox.state)], { env: {} });
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await child.exited;
    });
    for await (const chunk of child.stdout) if (Buffer.from(chunk).toString().includes('ready')) break;
    return shownBy(changes());
  };

  test.for(['worktree', 'part of a repository'])('cannot make git read through a link: in a %s', async (where) => {
    const sandboxes = isolatedSandboxes(temporaryFolder(), { network: 'none' });
    const { path, secret } = secretFolder();
    const files = { 'p/x': '1\n', 'z/file': '1\n' };
    const inTree = where === 'worktree';
    const cwd = inTree ? repository(files) : join(repository({ 'sub/p/x': '1\n', 'sub/z/file': '1\n' }), 'sub');
    const id = inTree ? TREE : 'one';
    const sandbox = await sandboxes.open(id, { cwd });
    const shown = await attacked(sandbox, path, () => sandboxes.changes(id, { cwd }));
    expect(shown).not.toContain(secret);
    // Git has reached the pipe, and the folder was replaced then.
    expect(existsSync(join(sandbox.state, 'exchanged')), shown).toBe(true);
  });
});

test('what is hidden in a named directory is neither compared with the repository above it nor listed', async () => {
  const project = repository({ 'sub/a': '1\n', '.gitignore': '*.log\n', 'sub/.gitignore': 'own\n' });
  const cwd = join(project, 'sub');
  const home = join(cwd, 'data');
  const sandboxes = isolatedSandboxes(home, { network: 'none' });
  await sandboxes.open('one', { cwd });
  for (const name of ['data/token', 'x.log', 'own', 'new']) write(cwd, name, 'x');
  // The ignore rules above the directory apply.
  const { files } = await sandboxes.changes('one', { cwd });
  expect(files.map((file) => file.path)).toEqual(['new']);
  expect((await sandboxes.files('one', { cwd, match: 'token' })).paths).toEqual([]);
});

test('a repository of the agent in its worktree is not committed: git would run what its settings name', async () => {
  const cwd = repository({});
  const trace = join(temporaryFolder(), 'ran');
  const sandboxes = isolatedSandboxes(temporaryFolder(), { network: 'none' });
  const sandbox = await sandboxes.open(TREE, { cwd });
  const worktrees = worktreesOf(sandboxes);
  await run(
    sandbox,
    `mkdir nested; cd nested; git init -q; git config user.name a; git config user.email a
echo 1 > f; git add f; git commit -qm one; git config filter.x.clean 'touch ${trace}; cat'; echo '* filter=x' > .gitattributes; echo 2 > f`,
  );
  for (const text of ['one', 'two']) {
    write(sandbox.work, 'a.txt', text);
    await expect(worktrees.keep(TREE, { commit: text })).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringContaining('nested'),
    });
  }
  expect(existsSync(trace)).toBe(false);
  expect(await worktrees.unsaved(TREE)).toBeGreaterThan(1);
  await run(sandbox, 'rm -rf nested/.git nested/.gitattributes');
  await worktrees.keep(TREE, { commit: 'three' });
  expect(git(cwd, 'ls-tree', '-r', '--name-only', 'throughline/one')).toContain('nested/f');
});

test('a repository in the place of a submodule runs nothing, and is not thrown away', async () => {
  const cwd = repository({});
  git(cwd, 'update-index', '--add', '--cacheinfo', `160000,${git(cwd, 'rev-parse', 'HEAD')},nested`);
  git(cwd, 'commit', '--quiet', '--message', 'submodule');
  const trace = join(temporaryFolder(), 'ran');
  const sandboxes = isolatedSandboxes(temporaryFolder(), { network: 'none' });
  const sandbox = await sandboxes.open(TREE, { cwd });
  expect(await worktreesOf(sandboxes).unsaved(TREE)).toBe(0);
  await run(
    sandbox,
    `mkdir -p nested; cd nested; git init -q; git config user.name a; git config user.email a
echo 1 > f; git add f; git commit -qm one; git config filter.x.clean 'touch ${trace}; cat'; echo '* filter=x' > .gitattributes; echo 2 > f`,
  );
  await expect(sandboxes.remove(TREE)).rejects.toMatchObject({ code: 'refused' });
  write(sandbox.work, 'a.txt', 'changed');
  await expect(worktreesOf(sandboxes).keep(TREE, { commit: 'x' })).rejects.toMatchObject({ code: 'refused' });
  expect(existsSync(trace)).toBe(false);
  expect(readFileSync(join(sandbox.work, 'nested/f'), 'utf8')).toBe('2\n');
});

describe('in the repository of a worktree, an agent that works in the repository itself', () => {
  test.for(['info', 'objects', 'refs', 'HEAD', 'packed-refs', 'shallow', 'worktrees/work'])(
    'cannot show files of this machine by a link: %s',
    async (name) => {
      const cwd = repository({});
      const { path, secret } = secretFolder();
      const sandboxes = isolatedSandboxes(temporaryFolder(), { network: 'none' });
      await sandboxes.open(TREE, { cwd });
      const planted = join(cwd, '.git', name);
      rmSync(planted, { recursive: true, force: true });
      const isFile = ['HEAD', 'packed-refs', 'shallow'].includes(name);
      symlinkSync(isFile ? join(path, 'file') : path, planted);
      const read = async () => run(await sandboxes.open(TREE, { cwd }), `cat '${planted}' '${planted}/file'`);
      const shown = await shownBy(read());
      expect(shown).not.toContain(secret);
      expect(shown).toMatch(/link/);
    },
  );

  test('cannot replace the repository with another one', async () => {
    const [cwd, theirs] = [repository({}), repository({ 'secret.txt': 'theirs' })];
    const sandboxes = isolatedSandboxes(temporaryFolder(), { network: 'none' });
    rmSync(join(cwd, '.git'), { recursive: true });
    write(cwd, '.git', `gitdir: ${join(theirs, '.git')}\n`);
    await expect(sandboxes.open(TREE, { cwd })).rejects.toMatchObject({ code: 'refused' });
    rmSync(join(cwd, '.git'));
    symlinkSync(join(theirs, '.git'), join(cwd, '.git'));
    await expect(sandboxes.open(TREE, { cwd })).rejects.toMatchObject({ code: 'refused' });
    await expect(worktreesOf(sandboxes).check(cwd)).rejects.toMatchObject({ code: 'refused' });
    expect(git(theirs, 'worktree', 'list').split('\n')).toHaveLength(1);
  });

  test('another worktree of it, and a submodule, can have worktrees', async () => {
    const [main, library] = [repository({}), repository({})];
    git(main, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', library, 'library');
    git(main, 'commit', '--quiet', '--message', 'submodule');
    git(join(main, 'library'), 'config', 'user.name', 'Ann');
    git(join(main, 'library'), 'config', 'user.email', 'ann@example.org');
    const other = join(temporaryFolder(), 'other');
    git(main, 'worktree', 'add', '--quiet', other);
    for (const cwd of [other, join(main, 'library')]) {
      const sandboxes = isolatedSandboxes(temporaryFolder(), { network: 'none' });
      const sandbox = await sandboxes.open(TREE, { cwd });
      expect(await run(sandbox, 'git status --porcelain; cat a.txt')).toBe('one\n');
      write(sandbox.work, 'a.txt', 'two\n');
      const { merged } = await worktreesOf(sandboxes).keep(TREE, { commit: 'two', merge: true });
      expect(git(cwd, 'rev-parse', 'HEAD')).toBe(merged);
    }
  });

  test('cannot borrow the objects of another repository', async () => {
    const [cwd, theirs] = [repository({}), repository({ 'secret.txt': 'theirs' })];
    write(cwd, '.git/objects/info/alternates', `${join(theirs, '.git/objects')}\n`);
    write(cwd, '.git/refs/heads/main', `${git(theirs, 'rev-parse', 'HEAD')}\n`);
    const sandboxes = isolatedSandboxes(temporaryFolder(), { network: 'none' });
    await expect(sandboxes.open(TREE, { cwd })).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringContaining('alternates'),
    });
  });

  test.for(['elsewhere', 'above'])('cannot make a merge write to a directory: %s', async (where) => {
    const above = temporaryFolder();
    const cwd = join(above, 'project');
    renameSync(repository({}), cwd);
    const sandboxes = isolatedSandboxes(temporaryFolder(), { network: 'none' });
    const elsewhere = where === 'above' ? above : temporaryFolder();
    const before = readdirSync(elsewhere);
    git(cwd, 'config', 'core.worktree', elsewhere);
    await expect(sandboxes.open(TREE, { cwd })).rejects.toMatchObject({ code: 'refused' });
    expect(readdirSync(elsewhere)).toEqual(before);
  });

  test('cannot make git run programs by settings, includes or hooks', async () => {
    const cwd = repository({});
    const trace = join(temporaryFolder(), 'ran');
    const evil = join(cwd, '.git/evil');
    const names = ['core.fsmonitor', 'core.pager', 'core.sshCommand', 'core.editor', 'core.alternateRefsCommand'];
    const more = ['diff.external', 'diff.e.command', 'diff.e.textconv', 'filter.e.clean', 'filter.e.process'];
    write(cwd, '.git/evil', `#!/bin/sh\ntouch ${trace}\ncat\n`);
    for (const name of [...names, ...more, 'filter.e.smudge', 'gpg.program']) git(cwd, 'config', name, evil);
    for (const setting of ['commit.gpgSign', 'filter.e.required', 'submodule.recurse'])
      git(cwd, 'config', setting, 'true');
    write(cwd, '.git/more', `[core]\n\tattributesFile = ${cwd}/.git/attributes\n`);
    write(cwd, '.git/attributes', '* filter=e diff=e\n');
    write(cwd, '.git/info/attributes', '* filter=e diff=e\n');
    appendFileSync(join(cwd, '.git/config'), `[includeIf "gitdir:${cwd}/"]\n\tpath = ${cwd}/.git/more\n`);
    execFileSync('chmod', ['+x', evil]);
    for (const hook of ['post-checkout', 'pre-commit', 'reference-transaction', 'post-index-change', 'post-merge'])
      execFileSync('cp', [evil, join(cwd, '.git/hooks', hook)]);
    const sandboxes = isolatedSandboxes(temporaryFolder(), { network: 'none' });
    const sandbox = await sandboxes.open(TREE, { cwd });
    write(sandbox.work, 'a.txt', 'two\n');
    expect(await sandboxes.changes(TREE, { cwd })).toMatchObject({ files: [{ path: 'a.txt', change: 'modified' }] });
    const { merged } = await worktreesOf(sandboxes).keep(TREE, { commit: 'two', merge: true });
    expect(merged).not.toBeNull();
    expect(readFileSync(join(cwd, 'a.txt'), 'utf8')).toBe('two\n');
    await sandboxes.remove(TREE);
    expect(existsSync(trace)).toBe(false);
  });
});
