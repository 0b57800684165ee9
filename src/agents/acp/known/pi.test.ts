import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Update } from '../../../core/turn/update.ts';
import { PI_QUIRKS } from './pi.ts';

const home = mkdtempSync(join(tmpdir(), 'throughline-pi-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Why the last turn of a session with these messages failed. */
const failureOf = (...messages: object[]) => failureAfter('', ...messages);

async function failureAfter(before: string, ...messages: object[]): Promise<string | null | undefined> {
  const sessionFile = join(home, 'session.jsonl');
  const lines = [
    { type: 'session' },
    ...messages.map((message) => ({ type: 'message', message })),
    { type: 'context_edit' },
  ];
  writeFileSync(sessionFile, `${before}${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
  mkdirSync(join(home, '.pi', 'pi-acp'), { recursive: true });
  writeFileSync(join(home, '.pi', 'pi-acp', 'session-map.json'), JSON.stringify({ sessions: { s: { sessionFile } } }));
  return PI_QUIRKS.failureOf?.('s', { env: { HOME: home } });
}

const asked = { role: 'user', content: [] };
const failed = { role: 'assistant', content: [], stopReason: 'error', errorMessage: '401: no key' };
const answered = { role: 'assistant', content: [], stopReason: 'stop' };

test('its session file shows why a turn failed', async () => {
  expect(await failureOf(asked, failed)).toBe('the model’s answer failed: 401: no key');
  expect(await failureOf(asked, { ...failed, errorMessage: undefined })).toMatch(/pi does not say why/);
  expect(await failureOf(asked, failed, answered)).toBeNull();
  expect(await failureOf(asked, failed, asked)).toBeNull();
});

test('a line that was cut off long ago hides no failure', async () => {
  expect(await failureAfter('{"type":"mess\n', asked, failed)).toBe('the model’s answer failed: 401: no key');
});

test('where there is no such file, nothing shows a failure', async () => {
  expect(await PI_QUIRKS.failureOf?.('unknown', { env: { HOME: home } })).toBeNull();
  expect(await PI_QUIRKS.failureOf?.('s', { env: { HOME: join(home, 'elsewhere') } })).toBeNull();
});

test('what it says about itself is no answer', () => {
  const about = (text: string) => {
    const update: Update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } };
    return PI_QUIRKS.aboutAnswer?.(update);
  };
  expect(about('Retrying (attempt 1/3, waiting 2s)...')).toBe('retry');
  expect(about('Retry finished, resuming.')).toBe('notice');
  expect(about('It said: Retry finished, resuming.')).toBeNull();
});
