import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { BrowserContext, Page } from 'playwright-core';
import { build } from 'vite';
import type * as client from '../../src/client.ts';

const ENTRY = fileURLToPath(new URL('../../src/client.ts', import.meta.url));

declare global {
  /** What `throughline/client` exports. The pages of these tests have it as a global variable. */
  var throughline: typeof client;
  var readTextsAndAllow: typeof readTexts;
}

/** Runs in a page: collects the texts of an answer as they arrive. After the first text the agent asks for a permission, which is allowed. */
async function readTexts(
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

/** `throughline/client` bundled for a page: a script that sets `throughline` and `readTextsAndAllow`. */
export function clientBundle(): Promise<Bundle> {
  shared.throughlineBundle ??= bundleClient();
  return shared.throughlineBundle;
}

async function bundleClient(): Promise<Bundle> {
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
    code: `${chunk.code}; globalThis.throughline = throughline; globalThis.readTextsAndAllow = ${readTexts};`,
    modules: chunk.moduleIds,
  };
}

/** A page that only loads the client. */
export const PAGE = '<!doctype html><title>a page</title><script src="/client.js"></script>';

/** The same page in a sandboxed frame, whose origin is null. */
const FRAMED = '<!doctype html><iframe sandbox="allow-scripts" src="/"></iframe>';

/** A web server of another site, with that page. It has two host names: for a browser, these are two origins and two sites. */
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

  get otherOrigin(): string {
    return `http://localhost:${this.#port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export async function openPage(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(url);
  return page;
}
