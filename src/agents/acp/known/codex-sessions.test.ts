import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { beforeEach, expect, test } from 'vitest';
import { sandboxAt } from '../../../../test/contracts/agent-sandbox.ts';
import { temporaryFolder } from '../../../../test/temporary-folder.ts';
import { outdated, whyNotOpened } from './codex-sessions.ts';

const ID = '01a1e20b-fffc-71c3-bb1d-cae602974454';
const TODAY = `sessions/2026/11/16/rollout-2026-11-16T01-49-59-${ID}.jsonl`;
const ZED = { name: 'codex-acp', version: '0.16.0' };
const OLD = { name: '@agentclientprotocol/codex-acp', version: '1.8.0' };
const NEW = { name: '@agentclientprotocol/codex-acp', version: '2.6.0' };

let home: string;
beforeEach(() => {
  home = temporaryFolder();
});

const meta = (more: object, ordinal?: number) =>
  JSON.stringify({
    timestamp: '2026-11-16T01:49:59.720Z',
    ...(ordinal === undefined ? {} : { ordinal }),
    type: 'session_meta',
    payload: { id: ID, cli_version: '0.1.0', ...more },
  });
const said = (more: object = {}) =>
  JSON.stringify({ timestamp: '2026-11-16T01:50:00.000Z', ...more, type: 'event_msg', payload: { type: 'x' } });
const LEGACY = [meta({}), said()];
const PAGINATED = [meta({ history_mode: 'paginated' }, 0), said({ ordinal: 1 })];

function write(lines: readonly string[], file = TODAY): void {
  const path = join(home, file);
  mkdirSync(dirname(path), { recursive: true });
  const text = Buffer.from(`${lines.join('\n')}\n`);
  writeFileSync(path, file.endsWith('.zst') ? zstdCompressSync(text) : text);
}

const why = (program: typeof ZED, env: Record<string, string> = {}) =>
  whyNotOpened(ID, program, { env: { CODEX_HOME: home, ...env }, sandbox: sandboxAt(home) });

test.for<[string, string[], string, boolean, boolean]>([
  ['a session of an old Codex', LEGACY, TODAY, true, true],
  ['one that is marked as old', [meta({ history_mode: 'legacy' })], TODAY, true, true],
  ['one of a newer Codex', PAGINATED, TODAY, false, true],
  ['one whose numbers alone show it', [meta({}, 0), said({ ordinal: 1 })], TODAY, false, true],
  ['one that a newer Codex has converted', [...LEGACY, said({ ordinal: 2 })], TODAY, false, true],
  ['a fork of an old one by a newer Codex', [...PAGINATED, ...LEGACY], TODAY, false, true],
  ['one of an unknown future Codex', [meta({ history_mode: 'ledger' })], TODAY, false, false],
  ['a compressed one', PAGINATED, `${TODAY}.zst`, false, true],
  ['a compressed one of an old Codex', LEGACY, `${TODAY}.zst`, true, true],
  ['an archived one', PAGINATED, `archived_sessions/rollout-2026-11-16T01-49-59-${ID}.jsonl`, false, true],
  ['a damaged one', ['{"type":"session_meta"'], TODAY, false, false],
  ['one whose file is elsewhere', LEGACY, 'sessions/2026/11/16/rollout-2026-11-16T01-49-59-another.jsonl', false, true],
])('%s: may old programs open it, may the newest?', async ([, lines, file, old, newest]) => {
  write(lines, file);
  expect([await why(ZED), await why(OLD)].map((reason) => reason === null)).toEqual([old, old]);
  expect((await why(NEW)) === null).toBe(newest);
});

test.each([`${TODAY}.zst`, TODAY])('of two files of a session both count, also %s', async (newer) => {
  for (const file of [TODAY, `${TODAY}.zst`]) write(file === newer ? PAGINATED : LEGACY, file);
  expect(await why(ZED)).toMatch(/newer Codex wrote it/);
  expect(await why(NEW)).toBeNull();
});

test('a link or a pipe in the place of a file is not read, and the session is not opened', async () => {
  write(LEGACY);
  expect(await why(ZED)).toBeNull();
  renameSync(join(home, TODAY), join(home, 'elsewhere'));
  symlinkSync(join(home, 'elsewhere'), join(home, TODAY));
  for (const program of [ZED, NEW]) expect(await why(program)).toContain('cannot be read');
  rmSync(join(home, TODAY));
  // No process has the other end open, so opening it would block forever.
  execFileSync('mkfifo', [join(home, TODAY)]);
  for (const program of [ZED, NEW]) expect(await why(program)).toContain('cannot be read');
  renameSync(join(home, 'sessions'), join(home, 'moved'));
  symlinkSync(join(home, 'moved'), join(home, 'sessions'));
  expect(await why(ZED)).toContain('was not found');
});

test('the reason says what could happen, and how to update', async () => {
  write(PAGINATED);
  expect(await why(ZED)).toMatch(/newer Codex wrote it, in the format "paginated".*codex-acp 0\.16\.0 could damage it/);
  expect(await why(ZED)).toContain('throughline agents install codex');
  expect(outdated(ZED)).toContain('damages sessions of newer Codexes');
  expect(outdated(NEW)).toBeNull();
});

test('a Codex that the user installed is judged by the version that it prints', async () => {
  write(PAGINATED);
  const codex = join(home, 'codex');
  const prints = (text: string) => writeFileSync(codex, `#!/bin/sh\necho "${text}"\n`);
  for (const [text, may] of [
    ['codex-cli 0.166.0', true],
    ['codex-cli 0.140.0', false],
    ['what?', false],
  ] as const) {
    prints(text);
    chmodSync(codex, 0o755);
    expect((await why(NEW, { CODEX_PATH: codex })) === null, text).toBe(may);
  }
});

test('an id that is not a file name opens no file', async () => {
  for (const id of ['../../x', '*', '', 'a b']) {
    const here = { env: { CODEX_HOME: home }, sandbox: sandboxAt(home) };
    expect(await whyNotOpened(id, ZED, here)).toContain('was not found');
  }
});
