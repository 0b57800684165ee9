import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { BrowserContext, Page } from 'playwright-core';
import { build } from 'vite';
import type * as client from '../../src/client.ts';

const ENTRY = fileURLToPath(new URL('../../src/client.ts', import.meta.url));

declare global {
  /** In a page of these tests: what `throughline/client` exports. */
  var throughline: typeof client;
  var textsWhileAllowing: typeof allowing;
}

/** In a page: the texts of an answer as they come. After the first one, while the agent waits for it, its question is allowed. */
async function allowing(
  tl: Awaited<ReturnType<typeof client.connect>>,
  { textStream }: { readonly textStream: AsyncIterable<string> },
): Promise<string[]> {
  const texts: string[] = [];
  for await (const text of textStream) {
    texts.push(text);
    while (texts.length === 1) {
      const [question] = await tl.permissions({ open: true });
      if (question === undefined) continue;
      await tl.answer(question.id, 'allow');
      break;
    }
  }
  return texts;
}

export interface Bundle {
  readonly code: string;
  readonly modules: readonly string[];
}

const shared = globalThis as { throughlineBundle?: Promise<Bundle> };

/** `throughline/client` bundled for a page: a script that sets `throughline` and `textsWhileAllowing`. */
export function clientBundle(): Promise<Bundle> {
  shared.throughlineBundle ??= bundled();
  return shared.throughlineBundle;
}

async function bundled(): Promise<Bundle> {
  const [output] = [
    await build({
      configFile: false,
      logLevel: 'silent',
      build: { lib: { entry: ENTRY, formats: ['iife'], name: 'throughline' }, write: false, minify: false },
    }),
  ].flat() as { output: { code: string; moduleIds: string[] }[] }[];
  const [chunk] = output?.output ?? [];
  if (chunk === undefined) throw new Error('nothing was built');
  return {
    code: `${chunk.code}; globalThis.throughline = throughline; globalThis.textsWhileAllowing = ${allowing};`,
    modules: chunk.moduleIds,
  };
}

/** A page that has the client; nothing else is on it. */
export const PAGE = '<!doctype html><title>a page</title><script src="/client.js"></script>';

/** The same in a frame without an origin. */
const FRAMED = '<!doctype html><iframe sandbox="allow-scripts" src="/"></iframe>';

/** Another program on this machine that serves such a page: under two names, which are two origins, and two sites. */
export class OtherSite {
  readonly #server = createServer(async ({ url }, response) => {
    if (url === '/framed') response.setHeader('content-type', 'text/html').end(FRAMED);
    else if (url === '/') response.setHeader('content-type', 'text/html').end(PAGE);
    else if (url === '/client.js')
      response.setHeader('content-type', 'text/javascript').end((await clientBundle()).code);
    else response.writeHead(404).end();
  });

  static async start(): Promise<OtherSite> {
    const site = new OtherSite();
    site.#server.listen(0, '127.0.0.1');
    await once(site.#server, 'listening');
    return site;
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get otherName(): string {
    return `http://localhost:${this.#port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export async function opened(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(url);
  return page;
}
