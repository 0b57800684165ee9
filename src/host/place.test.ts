import { spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fill, smallDisk } from '../../test/faults/full-disk/small-disk.ts';
import { bootsOf, placeOf } from './place.ts';

let home: string;
beforeEach(() => {
  home = join(mkdtempSync(join(tmpdir(), 'throughline-place-')), 'home');
});
afterEach(() => rmSync(join(home, '..'), { recursive: true, force: true }));

test('a data home has one place, which never changes and is private', () => {
  const place = placeOf(home);
  expect(place).toMatch(/^[0-9a-f]{32}$/);
  expect(placeOf(home)).toBe(place);
  expect(statSync(join(home, 'place')).mode & 0o777).toBe(0o600);
  expect(statSync(home).mode & 0o777).toBe(0o700);
  expect(readdirSync(home)).toEqual(['place']);
});

test('two homes are two places', () => {
  expect(placeOf(home)).not.toBe(placeOf(join(home, 'other')));
});

const HOMES = Array.from({ length: 100 }, (_, n) => String(n));

/** Several processes ask at once for the places of many homes. Returns the different lists of places: one, if all processes agree. */
async function askedAtOnce(): Promise<Set<string>> {
  const module = new URL('place.ts', import.meta.url).href;
  const script = `
    const { placeOf } = await import(${JSON.stringify(module)});
    const [home, ...names] = process.argv.slice(1);
    console.log('ready');
    process.stdin.once('end', () => console.log(names.map((name) => placeOf(home + '/' + name)).join())).resume();`;
  const processes = Array.from({ length: 3 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', script, home, ...HOMES]),
  );
  const outputs = processes.map(({ stdout }) => createInterface(stdout)[Symbol.asyncIterator]());
  for (const lines of outputs) expect((await lines.next()).value).toBe('ready');
  for (const { stdin } of processes) stdin.end();
  return new Set(await Promise.all(outputs.map(async (lines) => (await lines.next()).value ?? 'nothing')));
}

test('processes that ask for the first time at once agree', async () => {
  const told = await askedAtOnce();
  expect(told.size).toBe(1);
  expect(HOMES.map((name) => placeOf(join(home, name))).join()).toBe([...told][0]);
});

test.each(['', 'abc', `${'a'.repeat(31)}\n`, 'not an id at all\n'])(
  'a file that was left half-written (%j) is repaired once',
  (content) => {
    placeOf(home);
    writeFileSync(join(home, 'place'), content);
    const place = placeOf(home);
    expect(place).toMatch(/^[0-9a-f]{32}$/);
    expect(placeOf(home)).toBe(place);
    expect(readFileSync(join(home, 'place'), 'utf8')).toBe(`${place}\n`);
  },
);

test('a full disk is reported with a hint, and the place is created when there is space', (context) => {
  const disk = smallDisk(context);
  const makeRoom = fill(disk);
  const full = { code: 'storage_full', message: `The disk of ${disk} is full.`, hint: expect.stringMatching(/^Free /) };
  expect(() => placeOf(disk)).toThrow(expect.objectContaining(full));
  makeRoom();
  expect(placeOf(disk)).toMatch(/^[0-9a-f]{32}$/);
});

test('processes that repair it at once agree', async () => {
  for (const name of HOMES.slice(0, 3)) {
    placeOf(join(home, name));
    writeFileSync(join(home, name, 'place'), '0123');
  }
  expect((await askedAtOnce()).size).toBe(1);
});

test('a file that has the name of the home is refused, and not changed', () => {
  writeFileSync(home, 'mine');
  expect(() => placeOf(home)).toThrow(expect.objectContaining({ code: 'refused' }));
  expect(readFileSync(home, 'utf8')).toBe('mine');
});

test('a home that cannot be created is named in the error', (context) => {
  if (!existsSync('/sys/kernel')) return context.skip('needs a directory that even root cannot write');
  expect(() => placeOf('/sys/throughline/home')).toThrow(expect.objectContaining({ code: 'storage_readonly' }));
});

const at = (boot: string, machine: string | null = 'one') => bootsOf(home, { boot, machine: () => machine });

test('a boot is over when the same machine has used the data home in it, and runs in another one now', () => {
  placeOf(home);
  expect(at('first')('first')).toBe(false);
  const second = at('second');
  expect([second('first'), second('second'), second('unheard')]).toEqual([true, false, false]);
  expect(at('third')('second')).toBe(true);
  expect(statSync(join(home, 'boots')).mode & 0o777).toBe(0o600);
  expect(readFileSync(join(home, 'boots'), 'utf8')).not.toContain('one');
});

test('the boots of a machine are unknown to another one with the same data home, or a copy of it', () => {
  placeOf(home);
  at('first');
  expect(at('other', 'two')('first')).toBe(false);
  expect(at('second')('other')).toBe(false);
  cpSync(home, join(home, '..', 'copy'), { recursive: true });
  const copied = bootsOf(join(home, '..', 'copy'), { boot: 'third', machine: () => 'two' });
  expect([copied('first'), copied('other'), copied('second')]).toEqual([false, true, false]);
});

test("copies of a machine that were made before the data home was used do not know each other's boots", () => {
  placeOf(home);
  cpSync(home, join(home, '..', 'copy'), { recursive: true });
  at('first');
  expect(bootsOf(join(home, '..', 'copy'), { boot: 'second', machine: () => 'one' })('first')).toBe(false);
});

test('a machine without an id knows no earlier boot', () => {
  placeOf(home);
  at('first', null);
  expect(at('second', null)('first')).toBe(false);
  expect(existsSync(join(home, 'boots'))).toBe(false);
});

test('many boots are kept, but not all', () => {
  placeOf(home);
  for (let n = 0; n < 450; n += 1) at(`boot-${n}`);
  const isOver = at('now');
  expect([isOver('boot-449'), isOver('boot-400'), isOver('boot-0')]).toEqual([true, true, false]);
  expect(readFileSync(join(home, 'boots'), 'utf8').split('\n').length).toBeLessThan(210);
});

test.each([
  ['half a line', () => writeFileSync(join(home, 'boots'), 'abc')],
  ['a directory', () => mkdirSync(join(home, 'boots'))],
])('if the list of boots is %s, no earlier boot is known, and the data home can still be used', (_, breakIt) => {
  placeOf(home);
  breakIt();
  at('first');
  expect(at('second')('first')).toBe(false);
});
