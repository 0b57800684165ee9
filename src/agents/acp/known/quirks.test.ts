import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { sandboxAt } from '../../../../test/contracts/agent-sandbox.ts';
import type { Update } from '../../../core/turn/update.ts';
import { COPILOT_QUIRKS } from './copilot.ts';
import type { Quirks } from './description.ts';
import { quirksOf } from './known.ts';
import { PI_QUIRKS } from './pi.ts';

const home = mkdtempSync(join(tmpdir(), 'throughline-pi-'));
const at = (HOME: string) => ({ sandbox: sandboxAt(home), env: { HOME } });
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Why the last turn of a session with these messages failed. */
const failureOf = (...messages: object[]) => failureAfter('', ...messages);

async function failureAfter(before: string, ...messages: object[]): Promise<string | null | undefined> {
  const sessionFile = join(home, '.pi', 'session.jsonl');
  mkdirSync(join(home, '.pi', 'pi-acp'), { recursive: true });
  const lines = [
    { type: 'session' },
    ...messages.map((message) => ({ type: 'message', message })),
    { type: 'context_edit' },
  ];
  writeFileSync(sessionFile, `${before}${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
  writeFileSync(join(home, '.pi', 'pi-acp', 'session-map.json'), JSON.stringify({ sessions: { s: { sessionFile } } }));
  return PI_QUIRKS.failureOf?.('s', at(home));
}

const asked = { role: 'user', content: [] };
const failed = { role: 'assistant', content: [], stopReason: 'error', errorMessage: '401: no key' };
const answered = { role: 'assistant', content: [], stopReason: 'stop' };

test('the session file of pi shows why a turn failed', async () => {
  expect(await failureOf(asked, failed)).toBe('the model’s answer failed: 401: no key');
  expect(await failureOf(asked, { ...failed, errorMessage: undefined })).toMatch(/pi gave no reason/);
  expect(await failureOf(asked, failed, answered)).toBeNull();
  expect(await failureOf(asked, failed, asked)).toBeNull();
});

test('an earlier incomplete line does not hide a failure', async () => {
  expect(await failureAfter('{"type":"mess\n', asked, failed)).toBe('the model’s answer failed: 401: no key');
});

test('without a session file, no failure is reported', async () => {
  expect(await PI_QUIRKS.failureOf?.('unknown', at(home))).toBeNull();
  expect(await PI_QUIRKS.failureOf?.('s', at(join(home, 'elsewhere')))).toBeNull();
});

test('only files in the folders of the agent are read, and no links are followed', async () => {
  expect(await failureOf(asked, failed)).not.toBeNull();
  const inside = join(home, '.pi', 'session.jsonl');
  const outside = join(home, 'outside.jsonl');
  renameSync(inside, outside);
  symlinkSync(outside, inside);
  expect(await PI_QUIRKS.failureOf?.('s', at(home))).toBeNull();
  rmSync(inside);
  const map = join(home, '.pi', 'pi-acp', 'session-map.json');
  writeFileSync(map, JSON.stringify({ sessions: { s: { sessionFile: outside } } }));
  expect(await PI_QUIRKS.failureOf?.('s', at(home))).toBeNull();
});

test('notices of the agent are not part of the answer', () => {
  const about = (text: string) => {
    const update: Update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } };
    return PI_QUIRKS.aboutAnswer?.(update);
  };
  expect(about('Retrying (attempt 1/3, waiting 2s)...')).toMatchObject({ attempt: 1, of: 3, inMs: 2_000 });
  expect(about('Retry finished, resuming.')).toBe('notice');
  expect(about('It said: Retry finished, resuming.')).toBeNull();
});

describe('other agents', () => {
  const about = (quirks: Quirks, text: string) =>
    quirks.aboutAnswer?.({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }) ?? null;

  test('Copilot and goose report errors of their models as messages', () => {
    expect(about(COPILOT_QUIRKS, 'Info: Response was interrupted due to a server error. Retrying...')).toMatchObject({
      attempt: null,
      reason: 'Response was interrupted due to a server error.',
    });
    expect(about(COPILOT_QUIRKS, 'Info: it is fine.')).toBeNull();
    const goose = quirksOf('goose', null);
    const broken = 'Network error: Stream decode error: x\n\nPlease resend your message to try again.';
    expect(about(goose, broken)).toBe('failed');
    expect(about(goose, `A log: ${broken}`)).toBeNull();
  });

  test('the event file of Copilot shows why a turn failed', async () => {
    const folder = join(home, '.copilot', 'session-state', 's');
    mkdirSync(folder, { recursive: true });
    const failure = (...events: object[]) => {
      writeFileSync(join(folder, 'events.jsonl'), events.map((event) => `${JSON.stringify(event)}\n`).join(''));
      return COPILOT_QUIRKS.failureOf?.('s', at(home));
    };
    const [prompt, answer] = [{ type: 'user.message' }, { type: 'assistant.message' }];
    const error = { type: 'session.error', data: { message: 'no key' } };
    const long = { type: 'system.message', data: { content: 'x'.repeat(100_000) } };
    expect(await failure(prompt, long, { type: 'assistant.turn_end' }, error, { type: 'session.shutdown' })).toBe(
      'the model’s answer failed: no key',
    );
    expect(await failure(prompt, error, prompt, answer, { type: 'assistant.turn_end' })).toBeNull();
    expect(await failure(prompt, error, prompt)).toBeNull();
    expect(await failure(prompt, error)).not.toBeNull();
    symlinkSync(folder, join(home, '.copilot', 'session-state', 'linked'));
    expect(await COPILOT_QUIRKS.failureOf?.('linked', at(home))).toBeNull();
    expect(await COPILOT_QUIRKS.failureOf?.('unknown', at(home))).toBeNull();
  });
});
