import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { connect } from '../../src/client.ts';
import { compose } from '../../src/compose.ts';
import { open } from '../../src/index.ts';

const home = mkdtempSync(join(tmpdir(), 'throughline-options-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const misspelt = (options: object) => options as never;

test('an option that there is not is refused with those that there are, and nothing is made', async () => {
  await expect(open(misspelt({ hom: home }))).rejects.toMatchObject({
    code: 'invalid',
    message: 'open() has no option "hom".',
    hint: expect.stringMatching(/^Known options: home, config, /),
  });
  await expect(connect(misspelt({ uri: 'http://127.0.0.1:1' }))).rejects.toThrow('connect() has no option "uri".');
  await using tl = await open({ home, settings: { agents: { scripted: { adapter: 'scripted' } } } });
  expect(() => tl.conversation('chat', misspelt({ agnet: 'scripted' }))).toThrow(
    'A conversation has no option "agnet".',
  );
  await expect(tl.conversation('chat').ask('hello', misspelt({ requestID: 'r-1' }))).rejects.toThrow(
    'Sending has no option "requestID".',
  );
  expect(await tl.engine.list()).toEqual([]);
  // What is set to nothing is left out.
  const { reply } = await tl.conversation('chat').ask('hello', misspelt({ requestID: undefined }));
  expect(reply).toBe('Noted: hello');
});

test('a time without end is the longest that a timer takes: a longer one would be over at once', async () => {
  const settings = { agents: { scripted: { adapter: 'scripted' } } };
  const engine = { permissionMs: Number.POSITIVE_INFINITY, idleMs: 1e12 };
  const { parts, engine: made } = await compose({ home, settings, engine });
  await made.close();
  expect(parts.settings).toMatchObject({ permissionMs: 2 ** 31 - 1, idleMs: 2 ** 31 - 1, maxWarm: 8 });
});
