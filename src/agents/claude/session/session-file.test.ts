import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { transcriptAt } from '../../../../test/contracts/transcript-file.ts';
import { temporaryFolder } from '../../../../test/temporary-folder.ts';
import { SessionFile } from './session-file.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder, 'session.jsonl');
});

const line = (uuid: string, parentUuid: string | null, more: object = {}) =>
  `${JSON.stringify({ type: 'user', uuid, parentUuid, timestamp: new Date(0).toISOString(), message: {}, ...more })}\n`;

test('reports what the prompt follows: an old entry, through new ones, or nothing in an empty session', async () => {
  const file = new SessionFile(transcriptAt(path));
  await file.mark('p1');
  expect(file.landing('p1', null)).toBeNull();
  appendFileSync(path, line('p1', null));
  await file.read();
  expect(file.landing('p1', null)).toMatchObject({ proof: 'proved' });
  expect(file.landing('p1', '3:other')).toMatchObject({ proof: 'refuted' });
  await file.mark('p2');
  appendFileSync(path, line('new', 'p1') + line('p2', 'new'));
  await file.read();
  expect(file.landing('p2', '1:p1')).toMatchObject({ proof: 'proved' });
  expect(file.landing('p2', '2:p1')).toMatchObject({ proof: 'refuted' });
  expect(file.landing('p2', null)).toMatchObject({ proof: 'refuted' });
});

test('a prompt whose parent is not in the file is refuted', async () => {
  const file = new SessionFile(transcriptAt(path));
  appendFileSync(path, line('p1', 'gone'));
  await file.read();
  expect(file.landing('p1', '1:gone')).toMatchObject({ proof: 'refuted' });
});

test('copies the bytes of whole lines from any offset', async () => {
  const file = new SessionFile(transcriptAt(path));
  expect(await file.copy(0)).toBeNull();
  const [one, two] = [line('a', null), line('ä', 'a')];
  appendFileSync(path, `${one}${two}{"half`);
  expect(Buffer.from((await file.copy(0)) ?? []).toString()).toBe(one + two);
  expect(Buffer.from((await file.copy(one.length)) ?? []).toString()).toBe(two);
  expect(await file.copy(10_000)).toBeNull();
});

test('a file that cannot be read has no position, and nothing is thrown', async () => {
  mkdirSync(path);
  const file = new SessionFile(transcriptAt(path));
  expect(await file.position()).toBeNull();
  expect(await file.copy(0)).toBeNull();
  await file.mark('p1');
  expect(file.landing('p1', null)).toBeNull();
});

test('concurrent reads give the same result', async () => {
  const file = new SessionFile(transcriptAt(path));
  appendFileSync(path, line('a', null) + line('b', 'a'));
  expect(await Promise.all([file.position(), file.position(), file.read(), file.position()])).toEqual([
    '2:b',
    '2:b',
    undefined,
    '2:b',
  ]);
});

test('copies whole lines from an offset on, and seals all that it has copied', async () => {
  const file = new SessionFile(transcriptAt(path));
  appendFileSync(path, line('p1', null));
  await file.read();
  const first = await file.copy(0);
  expect(String(first)).toBe(line('p1', null));
  appendFileSync(path, line('a1', 'p1'));
  await file.read();
  appendFileSync(path, `${line('p2', 'a1')}{"type":"half a li`);
  await file.read();
  const second = await file.copy(first?.length ?? 0);
  expect(String(second)).toBe(line('a1', 'p1') + line('p2', 'a1'));
  const whole = await file.copy(0);
  expect(String(whole)).toBe(line('p1', null) + line('a1', 'p1') + line('p2', 'a1'));
  expect(file.sealer.seal?.bytes).toBe(whole?.length);
  expect(await new SessionFile(transcriptAt(path)).sealer.holds(file.sealer.seal ?? expect.unreachable())).toBe(true);
});

test('copies a file that was replaced as it is now', async () => {
  const file = new SessionFile(transcriptAt(path));
  appendFileSync(path, line('old', null));
  await file.read();
  rmSync(path);
  await file.read();
  appendFileSync(path, line('other', null));
  await file.read();
  expect(String(await file.copy(0))).toBe(line('other', null));
});

test('a pipe in place of the file is not copied, and does not block', async () => {
  execFileSync('mkfifo', [path]);
  expect(String((await new SessionFile(transcriptAt(path)).copy(0)) ?? '')).toBe('');
});

test('a link in place of the file is not followed, and its target is not copied', async () => {
  const secret = join(folder, 'secret');
  appendFileSync(secret, line('p1', null));
  symlinkSync(secret, path);
  const file = new SessionFile(transcriptAt(path));
  expect([await file.position(), await file.copy(0)]).toEqual([null, null]);
  mkdirSync(join(folder, 'real'));
  appendFileSync(join(folder, 'real', 'session.jsonl'), line('p1', null));
  symlinkSync(join(folder, 'real'), join(folder, 'linked'));
  const below = new SessionFile(transcriptAt(join(folder, 'linked', 'session.jsonl'), folder));
  expect([await below.position(), await below.copy(0)]).toEqual([null, null]);
});
