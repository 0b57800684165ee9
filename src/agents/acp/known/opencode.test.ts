import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, expect, test } from 'vitest';
import { sandboxAt } from '../../../../test/contracts/agent-sandbox.ts';
import { OPENCODE_QUIRKS } from './opencode.ts';

const home = mkdtempSync(join(tmpdir(), 'throughline-opencode-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** As opencode 1.18 writes it. */
function database(folder: string): void {
  mkdirSync(join(folder, 'opencode'), { recursive: true });
  using db = new DatabaseSync(join(folder, 'opencode', 'opencode.db'));
  db.exec('CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, data TEXT NOT NULL)');
  const parts = [
    { type: 'step-start' },
    { type: 'text', text: '' },
    { type: 'step-start' },
    { type: 'text', text: 'One, ' },
    { type: 'reasoning', text: 'hm' },
    { type: 'text', text: 'two.' },
    { type: 'step-finish' },
  ];
  for (const [i, part] of parts.entries()) {
    db.prepare('INSERT INTO part VALUES (?, ?, ?)').run(`prt_${i}`, 'msg_1', JSON.stringify(part));
  }
}

const recorded = async (env: Record<string, string>) =>
  OPENCODE_QUIRKS.recordedTexts?.(['msg_1', 'msg_2'], { env, sandbox: sandboxAt(home) });

test('the final text of a message is read from the database', async () => {
  database(join(home, '.local', 'share'));
  database(join(home, 'elsewhere'));
  const texts = new Map([
    ['msg_1', 'One, two.'],
    ['msg_2', ''],
  ]);
  expect(await recorded({ HOME: home })).toEqual(texts);
  expect(await recorded({ HOME: home, XDG_DATA_HOME: join(home, 'elsewhere') })).toEqual(texts);
});

test('without the database, the streamed text is used unchanged', async () => {
  expect(await recorded({ HOME: join(home, 'nowhere') })).toEqual(new Map());
});
