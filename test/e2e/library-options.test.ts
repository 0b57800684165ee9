import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { connect } from '../../src/client.ts';
import { compose } from '../../src/compose.ts';
import { open } from '../../src/index.ts';
import { Home } from './support/home.ts';

const home = mkdtempSync(join(tmpdir(), 'throughline-options-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const misspelt = (options: object) => options as never;

test('an unknown option is refused with the list of known options, and nothing is created', async () => {
  await expect(open(misspelt({ hom: home }))).rejects.toMatchObject({
    code: 'invalid',
    message: 'open() has no option "hom".',
    hint: expect.stringMatching(/^Known options: home, config, /),
  });
  await expect(open(misspelt({ home, permissions: 'maybe' }))).rejects.toMatchObject({
    code: 'invalid',
    message: 'permissions must be "ask" or "deny", not "maybe".',
  });
  await expect(connect(misspelt({ uri: 'http://127.0.0.1:1' }))).rejects.toThrow('connect() has no option "uri".');
  await using tl = await open({ home, settings: { agents: { scripted: { adapter: 'scripted' } } } });
  expect(() => tl.conversation('chat', misspelt({ agnet: 'scripted' }))).toThrow(
    'A conversation has no option "agnet".',
  );
  await expect(tl.conversation('chat').ask('hello', misspelt({ requestID: 'r-1' }))).rejects.toThrow(
    'send() has no option "requestID".',
  );
  expect(await tl.engine.list()).toEqual([]);
  // An option that is undefined counts as left out.
  const { reply } = await tl.conversation('chat').ask('hello', misspelt({ requestID: undefined }));
  expect(reply).toBe('Noted: hello');
});

test.each([
  [{ home: '' }, 'invalid', 'A data home must be a non-empty text, not "".'],
  [{ home: 5 }, 'invalid', 'A data home must be a non-empty text, not 5.'],
  [{ config: 5 }, 'invalid', 'A settings file must be a non-empty text, not 5.'],
  [{ config: 'a.json', settings: {} }, 'refused', '"config" cannot be used together with "settings".'],
  [{ token: 'x' }, 'refused', '"token" needs "server".'],
  [{ takeUp: 'no' }, 'invalid', 'takeUp must be true or false, not "no".'],
  [{ onTrouble: 'x' }, 'invalid', 'onTrouble must be a function, not "x".'],
  [{ onBug: {} }, 'invalid', 'onBug must be a function, not {}.'],
  [{ engine: { maxWrm: 1 } }, 'invalid', '"engine" has no option "maxWrm".'],
])('open(%j) is refused', async (options, code, message) => {
  await expect(open(misspelt({ home, ...options }))).rejects.toMatchObject({ code, message });
});

const NO_URL =
  /^"url" must be the address of a server, such as https:\/\/agents\.example\.org, not (nothing|""|5|"agents")\.$/;
const NO_USER = /^The address of a server must not contain a user or a password\.$/;

test.each([
  [{}, NO_URL],
  [{ url: '' }, NO_URL],
  [{ url: 5 }, NO_URL],
  [{ url: 'agents' }, NO_URL],
  [{ url: 'https://ann:secret@127.0.0.1:9' }, NO_USER],
  [{ url: 'http://127.0.0.1:9', token: 5 }, /^A token must be a non-empty text, not 5\.$/],
  [{ url: 'http://127.0.0.1:9', owner: '' }, /^An owner must be a non-empty text, not ""\.$/],
])('connect(%j) is refused before anything is sent', async (options, message) => {
  await expect(connect(misspelt(options))).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(message),
  });
});

test('open() refuses the address of a server with a password, because errors would show it', async () => {
  const opened = open({ server: 'http://ann:secret@127.0.0.1:9', token: 'x' });
  await expect(opened).rejects.toMatchObject({ code: 'invalid', message: expect.stringMatching(NO_USER) });
});

test('a misspelt option of a verb is refused, and not ignored', async () => {
  await using tl = await open({ home, settings: { agents: { scripted: { adapter: 'scripted' } } } });
  const chat = tl.conversation('verbs', { agent: 'scripted' });
  await chat.ask('hello');
  const typo = misspelt({ upto: 1 });
  const verbs = ['fork', 'follow', 'turns', 'records', 'events', 'warm', 'erase', 'verify'] as const;
  for (const verb of verbs) {
    const call = verb === 'follow' ? chat.follow(typo).next() : chat[verb](typo);
    await expect(call).rejects.toThrow(`${verb}() has no option "upto".`);
  }
  expect(await chat.turns()).toHaveLength(1);
  await expect(chat.told(1, typo)).rejects.toThrow('told() has no option "upto".');
  for (const verb of ['conversations', 'permissions', 'usage', 'agents', 'close'] as const) {
    await expect(tl[verb](typo)).rejects.toThrow(`${verb}() has no option "upto".`);
  }
  await expect(tl.search('hello', typo)).rejects.toThrow('search() has no option "upto".');
  await expect(tl.answerOf('x', typo)).rejects.toThrow('answerOf() has no option "upto".');
  expect(() => tl.hints(typo)).toThrow('hints() has no option "upto".');
});

test('a prompt in a home without agents is refused with a hint how to install one, and leaves nothing behind', async () => {
  const { PATH } = process.env;
  process.env.PATH = '/nowhere';
  try {
    await using tl = await open({ home: join(home, 'bare'), settings: {} });
    const refused = {
      code: 'agent_unavailable',
      message: 'No agent is installed here.',
      hint: expect.stringContaining('throughline agents install claude'),
    };
    await expect(tl.conversation('chat').ask('hello')).rejects.toMatchObject(refused);
    expect(await tl.engine.list()).toEqual([]); // the refused prompt left no conversation
    await expect(tl.tasks.add({ goal: 'Say hello' })).rejects.toMatchObject({ code: 'agent_unavailable' });
    const chat = await tl.engine.ensure({ key: 'empty' });
    await expect(tl.engine.warm(chat.id)).rejects.toMatchObject(refused);
    expect(await tl.engine.agents()).toMatchObject([{ name: 'scripted', isDefault: false }]);
    expect((await tl.conversation('chat', { agent: 'scripted' }).ask('hello')).reply).toBe('Noted: hello');
  } finally {
    process.env.PATH = PATH;
  }
});

test.each([
  ['a setting', { agnets: {} }, 'Settings: "agnets" is not known'],
  ['an option of an agent', { agents: { a: { adapter: 'scripted', options: { idz: 1 } } } }, '"agents.a.options.idz"'],
])('an error in %s names the settings file', async (_, settings, message) => {
  const config = join(home, 'wrong.json');
  writeFileSync(config, JSON.stringify(settings));
  const hint = `The settings file is ${config}. All settings are described in throughline.schema.json.`;
  // What is wrong with one agent is reported to those who use it.
  const used = async () => {
    await using tl = await open({ home, config });
    await tl.conversation('wrong').ask('Hello.');
  };
  await expect(used()).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining(message), hint });
});

test('an infinite or very long time becomes the longest that a timer takes, because Node ends a longer timer at once', async () => {
  const settings = { agents: { scripted: { adapter: 'scripted' } } };
  const engine = { permissionMs: Number.POSITIVE_INFINITY, idleMs: 1e12 };
  const { parts, engine: made } = await compose({ home, settings, engine });
  await made.close();
  expect(parts.settings).toMatchObject({ permissionMs: 2 ** 31 - 1, idleMs: 2 ** 31 - 1, maxWarm: 8 });
});

test('an owner whose name is no longer allowed can still be reached if an older version stored it, but not chosen again', async () => {
  await using home = new Home();
  const tl = await home.open();
  const stored = tl.engine.as('zoe\u0301', 'key 1');
  await stored.ensure({ key: 'chat' });
  expect((await stored.list()).map(({ key }) => key)).toEqual(['chat']);
  expect(await tl.tasks.as('zoe\u0301', 'key 1').run({ goal: 'x', gate: 'true' })).toMatchObject([{ state: 'done' }]);
  expect(() => tl.as('zoe\u0301')).toThrow('decomposed');
  expect(() => tl.engine.as('..')).toThrow('An owner must not be ".."');
});
