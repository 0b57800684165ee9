import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { open, type Throughline } from '../../src/index.ts';
import { CliHome } from '../e2e/cli/process.ts';
import { blocksIn, read } from './blocks.ts';

// The code in docs/recipes.md, run as it stands, with the scripted agent.

let home: CliHome;
let tl: Throughline;
/** A program that has ended: its sessions are gone. */
const settings = { agents: { scripted: { adapter: 'scripted', options: { resume: 'none' } } } } as const;
const opened = () => open({ home: join(home.path, 'home'), settings });
beforeEach(async () => {
  home = new CliHome();
  tl = await opened();
});
afterEach(async () => {
  await tl.close();
  home.remove();
});

const TS = blocksIn('docs/recipes.md', read('docs/recipes.md'), ['ts']).map(({ code }) => code);
const recipe = (word: string) => TS.find((code) => code.includes(word)) ?? expect.unreachable(`no recipe has ${word}`);

/** Runs a block with these names, and returns what it exports. Its imports are those of the test. */
async function run(code: string, names: object): Promise<Record<string, never>> {
  const required = createRequire(import.meta.url);
  const plain = stripTypeScriptTypes(code)
    .replaceAll(/^import (\{.*\}) from '(.*)';$/gm, "const $1 = imported('$2');")
    .replaceAll(/^export async function (\w+)/gm, 'exported.$1 = async function $1');
  const exported = {};
  const imported = (name: string) => (name === 'throughline' ? { open: opened } : required(name));
  const given = { ...names, exported, imported };
  const Body = Object.getPrototypeOf(async () => {}).constructor;
  await new Body(...Object.keys(given), plain)(...Object.values(given));
  return exported;
}

test('every block of TypeScript is run here', () => {
  const words = ['deliverTo', '.warm()', 'execFile', "from 'throughline'"];
  expect(TS.filter((code) => !words.some((word) => code.includes(word)))).toEqual([]);
});

test('the bot posts an answer once, when the webhook is repeated before and after the delivery', async () => {
  const posted: string[] = [];
  const webhook = () => run(recipe('deliverTo'), { tl, show: (text: string) => posted.push(text) });
  await Promise.all([webhook(), webhook()]);
  await webhook();
  expect(posted).toEqual(['Noted: Hello']);
  expect(await tl.pending()).toEqual([]);
});

test('the desktop app shows how the context of an opened conversation is restored', async () => {
  for (const word of ['amber', 'birch']) await tl.conversation('window-1').ask(`The codeword is ${word}.`);
  await tl.close();
  tl = await opened();
  const shown: string[] = [];
  await run(recipe('.warm()'), { tl, show: (text: string) => shown.push(text) });
  expect(shown[0]).toBe('Restoring 2 turns …');
  expect(shown.at(-1)).toBe('Ready (transcript)');
  const { reply, receipt } = await tl.conversation('window-1').ask('Which codewords have you seen?');
  expect(reply).toBe('I have seen these codewords: amber, birch.');
  expect(receipt.delivered).toBe(2);
});

test('the desktop app gets the error of a conversation that cannot be restored, and stops to wait for its events', async () => {
  await tl.conversation('window-1').ask('The codeword is amber.');
  await tl.close();
  tl = await open({ home: join(home.path, 'home'), settings: { agents: { other: { adapter: 'scripted' } } } });
  const waited: AbortSignal[] = [];
  class Controller extends AbortController {
    constructor() {
      super();
      waited.push(this.signal);
    }
  }
  await expect(run(recipe('.warm()'), { tl, show() {}, AbortController: Controller })).rejects.toThrow(
    'no agent "scripted"',
  );
  expect(waited.map(({ aborted }) => aborted)).toEqual([true]);
});

test('both loops of one’s own answer, and the one with Throughline remembers', async () => {
  const bin = join(home.path, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'claude'), `#!/bin/sh\necho '{"result":"Hello.","session_id":"s-1"}'\n`);
  chmodSync(join(bin, 'claude'), 0o755);
  const { PATH } = process.env;
  process.env.PATH = `${bin}:${PATH}`;
  try {
    const { answer } = (await run(recipe('execFile'), {})) as Record<string, (...args: string[]) => Promise<string>>;
    expect(await answer?.('thread', 'Hi')).toBe('Hello.');
  } finally {
    process.env.PATH = PATH;
  }
  await tl.close();
  const ours = await run(recipe("from 'throughline'"), {});
  const { answer } = ours as Record<string, (...args: string[]) => Promise<string>>;
  await answer?.('thread', 'The codeword is amber.');
  expect(await answer?.('thread', 'Which codewords have you seen?')).toBe('I have seen these codewords: amber.');
});

test('the commands run', async () => {
  const shell = blocksIn('docs/recipes.md', read('docs/recipes.md'), ['sh']).map(({ code }) => code.trim());
  expect(shell).not.toEqual([]);
  for (const line of shell.flatMap((code) => code.split('\n'))) {
    const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '');
    expect(words.shift()).toBe('throughline');
    await home.here.ok(...words);
  }
});
