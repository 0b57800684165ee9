// `throughline/client` as a page has it: bundled, and run where there is nothing of Node.
import { fileURLToPath } from 'node:url';
import { createContext, runInContext } from 'node:vm';
import { build } from 'vite';
import { expect, test } from 'vitest';
import type * as client from '../../../src/client.ts';
import { ServedHome, TOKEN } from '../http/support/served-home.ts';

const ENTRY = fileURLToPath(new URL('../../../src/client.ts', import.meta.url));

/** What every browser has, of what the client uses; nothing else is there. */
const BROWSER = {
  ...{ fetch, URL, URLSearchParams, AbortController, AbortSignal, ReadableStream, TextDecoder, TextEncoder },
  ...{
    setTimeout,
    clearTimeout,
    setInterval,
    clearInterval,
    performance,
    crypto: { randomUUID: () => crypto.randomUUID() },
  },
};

async function bundled(): Promise<{ readonly code: string; readonly modules: readonly string[] }> {
  const [output] = [
    await build({
      configFile: false,
      logLevel: 'silent',
      build: { lib: { entry: ENTRY, formats: ['iife'], name: 'throughline' }, write: false, minify: false },
    }),
  ].flat() as { output: { code: string; moduleIds: string[] }[] }[];
  const [chunk] = output?.output ?? [];
  if (chunk === undefined) throw new Error('nothing was built');
  return { code: chunk.code, modules: chunk.moduleIds };
}

test('a page speaks, follows and hears of faults, without anything of Node and without the schema library', async () => {
  const { code, modules } = await bundled();
  const packages = modules.flatMap((id) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id)?.[1] ?? []);
  expect([...new Set(packages)]).toEqual(['eventsource-parser']);
  expect(modules.filter((id) => /__vite-browser-external|^node:/.test(id))).toEqual([]);
  const context = createContext({ ...BROWSER });
  runInContext(`${code}; globalThis.throughline = throughline;`, context);
  const { connect } = context.throughline as typeof client;

  await using home = await ServedHome.start();
  const tl = await connect({ url: home.url, token: TOKEN });
  const kinds: string[] = [];
  for await (const { kind } of tl.conversation('chat').send('The codeword is osprey.')) kinds.push(kind);
  expect([kinds.at(0), kinds.at(-1)]).toEqual(['turn.queued', 'turn.ended']);
  const { reply } = await tl.conversation('chat').ask('Which codewords have you seen?');
  expect(reply).toBe('I have seen these codewords: osprey.');
  await expect(tl.engine.conversation('nothing')).rejects.toMatchObject({
    name: 'ThroughlineError',
    code: 'not_found',
  });
  expect(await tl.tasks.run({ goal: 'hello', cwd: home.path })).toMatchObject([{ state: 'done', cwd: home.path }]);
  await expect(tl.tasks.add({ goal: 'hello', cwd: '.' })).rejects.toMatchObject({ code: 'invalid' }); // relative to what?
  await tl.close();
});
