import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { backupHome } from '../../src/backup.ts';
import { open } from '../../src/index.ts';
import { CliHome, preload } from './cli/process.ts';

/*
 * A restore of the database and the sandboxes that is killed before each of its changes to the file system. Whatever command comes next
 * finds either the old data with the old sandboxes, or the restored data with the restored sandboxes.
 */

const SETTINGS = { agents: { scripted: { adapter: 'scripted' } }, defaultAgent: 'scripted' } as const;
const CHANGES = ['renameSync', 'linkSync', 'rmSync', 'mkdirSync', 'writeFileSync'];
const OLD = { turns: 2, work: 'old' };
const RESTORED = { turns: 1, work: 'restored' };

const cli = new CliHome();
const home = join(cli.path, 'home');
const template = join(cli.path, 'template');
const archive = join(cli.path, 'backup.tar');
const plan = join(home, 'throughline.db.restoring');
let work = '';

beforeAll(async () => {
  const tl = await open({ home, settings: SETTINGS });
  await tl.conversation('notes').ask('/tool write work.txt\nThe codeword is heron');
  const { id } = await tl.engine.conversation('notes');
  await tl.close();
  work = join(home, 'sandboxes', id, 'work', 'work.txt');
  writeFileSync(work, 'restored');
  await backupHome({ home, file: archive, force: false, sandboxes: true });
  const later = await open({ home, settings: SETTINGS });
  await later.conversation('notes').ask('The codeword is osprey');
  await later.close();
  writeFileSync(work, 'old');
  cpSync(home, template, { recursive: true });
  return () => cli.remove();
});

/** The data home as it was before the restore. */
function reset(): void {
  rmSync(home, { recursive: true, force: true });
  cpSync(template, home, { recursive: true });
}

/** For a run of a command: the process kills itself before its change of this number. */
const killBefore = (command: string, number: number) =>
  preload(
    command,
    `let left = ${number};
    for (const name of ${JSON.stringify(CHANGES)}) {
      const change = fs[name];
      fs[name] = (...args) => {
        left -= 1;
        if (left === 0) process.kill(process.pid, 'SIGKILL');
        return change(...args);
      };
    }
    syncBuiltinESMExports();`,
  );

/** False: it came to its end. */
async function isKilled(number: number, ...args: [string, ...string[]]): Promise<boolean> {
  const { code, signal, stderr } = await cli.start(args, { env: killBefore(args[0], number) }).ended;
  expect({ args, stderr: code === 0 || signal === 'SIGKILL' ? '' : stderr }).toEqual({ args, stderr: '' });
  return signal === 'SIGKILL';
}

/** What the next command finds. It runs in this process, and what it says about the restore is not shown. */
async function state() {
  const muted = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const { turns } = await cli.show('notes').finally(() => muted.mockRestore());
  return { turns: turns.length, work: readFileSync(work, 'utf8') };
}

let begins: number | null = null;

/** Kills a restore after it has begun to replace the data, this many changes later. */
async function killInTheMiddle(later: number): Promise<void> {
  begins ??= await firstUnfinished();
  reset();
  expect(await isKilled(begins + later, 'restore', archive)).toBe(true);
  expect(existsSync(plan)).toBe(true);
}

async function firstUnfinished(): Promise<number> {
  for (let number = 1; ; number += 1) {
    reset();
    expect(await isKilled(number, 'restore', archive)).toBe(true);
    if (existsSync(plan)) return number;
  }
}

test('a restore that is killed at any step leaves all of the old data or all of the restored data', async () => {
  const seen = new Set<string>();
  for (let number = 1, killed = true; killed; number += 1) {
    reset();
    killed = await isKilled(number, 'restore', archive);
    const isUnfinished = existsSync(plan);
    const found = await state();
    expect([OLD, RESTORED].map((each) => JSON.stringify(each))).toContain(JSON.stringify(found));
    if (isUnfinished || !killed) expect(found).toEqual(RESTORED);
    expect(existsSync(plan)).toBe(false);
    seen.add(isUnfinished ? 'completed' : found.work);
  }
  expect([...seen].toSorted()).toEqual(['completed', 'old', 'restored']);
});

test('the next command completes a killed restore, however often it is killed itself, and says so', async () => {
  await killInTheMiddle(2);
  let number = 1;
  while (await isKilled(number, 'list')) number += 1;
  expect(number).toBeGreaterThan(3);
  expect(existsSync(plan)).toBe(false);
  expect(await state()).toEqual(RESTORED);

  await killInTheMiddle(2);
  const { code, stderr } = await cli.run('list');
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringContaining(`The restore of ${archive} was killed`),
  });
  expect(stderr).toContain(`kept in ${join(home, 'aside')}`);
  expect(readdirSync(home).filter((name) => name.startsWith('.restore'))).toEqual([]);
  expect(await state()).toEqual(RESTORED);
});

test('a data home that was copied or moved in the middle of a restore completes its own restore, and not that of the first one', async () => {
  const other = join(cli.path, 'other');
  const list = async (at: string) => {
    const { code, stderr } = await cli.run('list', '--home', at);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining(`kept in ${join(at, 'aside')}.`) });
    expect(readFileSync(work.replace(home, at), 'utf8')).toBe('restored');
    expect(readdirSync(at).filter((name) => name.includes('.restor'))).toEqual([]);
  };
  await killInTheMiddle(2);
  cpSync(home, other, { recursive: true });
  const before = readdirSync(home, { recursive: true }).toSorted();
  await list(other);
  expect(readdirSync(home, { recursive: true }).toSorted()).toEqual(before);
  const moved = join(cli.path, 'moved');
  renameSync(home, moved);
  await list(moved);
});

test('a backup and a second restore complete it as well; doctor only reports it until it may repair', async () => {
  await killInTheMiddle(1);
  await cli.ok('backup', 'again.tar', '--sandboxes', '--force');
  expect(await state()).toEqual(RESTORED);

  await killInTheMiddle(1);
  const again = await cli.run('restore', archive);
  expect({ code: again.code, stderr: again.stderr }).toEqual({
    code: 0,
    stderr: expect.stringContaining('is now complete'),
  });
  expect(await state()).toEqual(RESTORED);

  await killInTheMiddle(1);
  const before = readdirSync(home);
  const seen = await cli.run('doctor', '--no-agents');
  expect({ code: seen.code, stdout: seen.stdout }).toEqual({
    code: 1,
    stdout: expect.stringContaining('only a part of the data'),
  });
  expect(readdirSync(home).toSorted()).toEqual(before.toSorted());
  const fixed = await cli.run('doctor', '--fix', '--no-agents');
  expect({ code: fixed.code, stdout: fixed.stdout }).toEqual({
    code: 0,
    stdout: expect.stringContaining('repaired: Complete it.'),
  });
  expect(await state()).toEqual(RESTORED);
});

test('if the new data of a killed restore was deleted, it is undone, and the old data is there again', async () => {
  for (const renames of [1, 2]) {
    await killInTheMiddle(renames);
    for (const name of readdirSync(home))
      if (name.startsWith('.restore-')) rmSync(join(home, name), { recursive: true });
    const { code, stderr } = await cli.run('list');
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/was deleted.*Nothing was replaced/s) });
    expect(await state()).toEqual(OLD);
  }
});

/** For a restore: renames from these paths fail. The sandboxes are replaced before the mark beside the database is moved. */
const busy = (stuck: (from: string, to: string) => boolean) =>
  preload(
    'restore',
    `const { renameSync } = fs;
    const [home, isStuck] = [${JSON.stringify(home)}, ${stuck}];
    fs.renameSync = (from, to) => {
      if (isStuck(from.slice(home.length), to.slice(home.length)))
        throw Object.assign(new Error('busy'), { code: 'EBUSY', path: from, dest: to });
      renameSync(from, to);
    };
    syncBuiltinESMExports();`,
  );

test('a restore that fails in the middle changes nothing', async () => {
  reset();
  const env = busy((from) => from === '/throughline.db.highwater');
  const { code, stderr } = await cli.start(['restore', archive], { env }).ended;
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringMatching(/cannot be moved to .*EBUSY.*Nothing was replaced/s),
  });
  expect(await state()).toEqual(OLD);
  expect(existsSync(plan)).toBe(false);
  expect(readdirSync(join(home, 'aside'))).toEqual([]);
});

test('a restore that can neither be completed nor undone says so, and the next command completes it', async () => {
  reset();
  const env = busy((from, to) => from === '/throughline.db.highwater' || to.startsWith('/.restore-'));
  const { code, stderr } = await cli.start(['restore', archive], { env }).ended;
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('It cannot be undone either') });
  expect(await state()).toEqual(RESTORED);
});

test('if the sandboxes are elsewhere, a killed restore leaves no plan, one that fails is undone, and the next one replaces everything', async () => {
  const elsewhere = join(cli.path, 'elsewhere', 'boxes');
  const settings = readFileSync(cli.config, 'utf8');
  onTestFinished(() => writeFileSync(cli.config, settings));
  cli.configure({ ...JSON.parse(settings), sandbox: { root: elsewhere } });
  const here = work.replace(join(home, 'sandboxes'), elsewhere);
  reset();
  cpSync(join(home, 'sandboxes'), elsewhere, { recursive: true });
  const stuck = busy((from) => from === '/throughline.db.highwater');
  expect((await cli.start(['restore', archive], { env: stuck }).ended).stderr).toContain('Nothing was replaced');
  expect([readFileSync(here, 'utf8'), (await state()).turns]).toEqual(['old', OLD.turns]);
  let number = 1;
  while (await isKilled(number, 'restore', archive)) {
    number += 1;
    expect(existsSync(plan)).toBe(false);
  }
  expect(number).toBeGreaterThan(5);
  expect([readFileSync(here, 'utf8'), (await state()).turns]).toEqual(['restored', RESTORED.turns]);
});
