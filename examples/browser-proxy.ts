// A web app whose pages use Throughline through the app's own server: one origin, so no CORS, and no key ever reaches a browser.
//
//   throughline keys create ann's-app --as ann --scopes read,prompt,approve        # for every user of the app
//   export THROUGHLINE_SERVER=$(throughline link --address)
//   THROUGHLINE_KEYS='{"ann":"tl_…"}' node browser-proxy.ts DIST                   # DIST: the built pages, with index.html
//
// In the pages: `import { connect } from 'throughline/client'` and `await connect({ url: '/throughline' })`.
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream';

const SERVER = process.env.THROUGHLINE_SERVER ?? '';
const KEYS = new Map<string, string>(Object.entries(JSON.parse(process.env.THROUGHLINE_KEYS ?? '{}')));
const FOLDER = process.argv[2] ?? 'dist';
const FILES = new Map(readdirSync(FOLDER).map((name) => [`/${name}`, readFileSync(join(FOLDER, name))]));
const TYPES: Record<string, string> = { html: 'text/html; charset=utf-8', js: 'text/javascript', css: 'text/css' };

/** Who is signed in. Replace this by the login of your app: this example simply trusts a cookie. */
function userOf({ headers }: IncomingMessage): string | undefined {
  return /(?:^|; )user=(\w+)/.exec(headers.cookie ?? '')?.[1];
}

const ASKED = ['content-type', 'content-length', 'accept', 'last-event-id', 'throughline-interface'];
const TOLD = ['content-type', 'content-length', 'throughline-interface', 'throughline-log', 'retry-after'];

/** Passes a request on with the key of the user. Data passes at once: streams are neither buffered nor cut. */
function pass(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const key = KEYS.get(userOf(incoming) ?? '');
  // The browser also sends the cookie with requests from other sites: allow only our own pages.
  if (key === undefined || incoming.headers['sec-fetch-site'] !== 'same-origin') {
    outgoing.writeHead(403).end('Sign in first.');
    return;
  }
  const url = new URL((incoming.url ?? '').slice('/throughline'.length), SERVER);
  if (!url.pathname.startsWith('/v1/')) {
    outgoing.writeHead(404).end();
    return;
  }
  // The cookie and the origin of the page are not passed on: to Throughline, the caller is this program.
  const headers = { ...only(ASKED, incoming.headers), authorization: `Bearer ${key}` };
  const asked = request(url, { method: incoming.method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, { ...only(TOLD, answer.headers), 'cache-control': 'no-store' });
    outgoing.flushHeaders(); // a stream may be silent for a long time
    pipeline(answer, outgoing, () => {});
  });
  asked.on('error', () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end())); // the client waits, and tries again
  outgoing.on('close', () => asked.destroy()); // the page has gone, or has stopped reading
  pipeline(incoming, asked, () => {});
}

function only(names: readonly string[], headers: IncomingMessage['headers']): Record<string, string | string[]> {
  return Object.fromEntries(names.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])));
}

const server = createServer((incoming, outgoing) => {
  const path = incoming.url?.split('?')[0] ?? '/';
  if (path.startsWith('/throughline/')) return pass(incoming, outgoing);
  const name = path === '/' ? '/index.html' : path;
  const file = FILES.get(name);
  const type = TYPES[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream';
  return file === undefined
    ? outgoing.writeHead(404).end()
    : outgoing.writeHead(200, { 'content-type': type }).end(file);
});
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as { port: number }).port}`);
});
