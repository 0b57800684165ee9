// A web app with its own users. Each user is an owner of conversations: users see nothing of each other, even with the same keys.
// node examples/web-app.ts HOME, then open the address that it prints.
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type ConversationHandle, open, statusOf, ThroughlineError } from 'throughline';

const [home = ''] = process.argv.slice(2);
const tl = await open({ home, settings: { agents: { scripted: { adapter: 'scripted' } } } });

// Replace this by the app's own login. Never take the owner from what a browser sends.
const users = new Map<string, string>(); // cookie → user

/** POST /login NAME · GET / · GET /chats · GET /chats/KEY · POST /chats/KEY TEXT · GET /chats/KEY/events */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://app');
  const [, folder, name, stream] = pathname.split('/').map(decodeURIComponent);
  if (folder === '') return void response.setHeader('content-type', 'text/html').end(PAGE);
  if (folder === 'login') return login(response, await text(request));
  const user = users.get(/session=([\w-]+)/.exec(request.headers.cookie ?? '')?.[1] ?? '');
  if (user === undefined) return void response.writeHead(401).end('Log in first.');
  const mine = tl.as(user);
  if (name === undefined) return json(response, 200, await mine.conversations());
  const chat = mine.conversation(name, { agent: 'scripted' });
  if (stream === 'events') return events(request, response, chat);
  if (request.method === 'GET') return json(response, 200, await chat.turns());
  // The browser makes an id for what the person typed, so that sending it again is the same turn.
  const sent = chat.send(await text(request), {
    requestId: String(request.headers['idempotency-key'] ?? randomUUID()),
  });
  const { turn, seq } = await sent.accepted; // stored: the turn runs, whatever happens to this browser or this process
  json(response, 202, { turn: turn.id, seq });
}

/** Server-sent events. A browser that was away continues after the last number that it saw, at any process of the app. */
async function events(request: IncomingMessage, response: ServerResponse, chat: ConversationHandle): Promise<void> {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  await chat.ensure();
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' }).flushHeaders();
  const after = Number(request.headers['last-event-id'] ?? 0);
  for await (const { seq, ...event } of chat.follow({ after, signal: gone.signal })) {
    response.write(`id: ${seq}\ndata: ${JSON.stringify(event)}\n\n`);
  }
}

function login(response: ServerResponse, user: string): void {
  const cookie = randomUUID();
  users.set(cookie, user);
  response.setHeader('set-cookie', `session=${cookie}; HttpOnly; SameSite=Strict; Path=/`).end('Welcome.');
}

function json(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

const PAGE = `<!doctype html><title>Chat</title><pre></pre><form><input autofocus></form><script type="module">
  await fetch('/login', { method: 'POST', body: prompt('Your name?') });
  const [shown, form, input] = document.querySelectorAll('pre, form, input');
  new EventSource('/chats/support/events').onmessage = ({ data }) => {
    const { kind, payload } = JSON.parse(data);
    if (kind === 'turn.queued') shown.append('you: ' + payload.preview + '\\n');
    if (kind === 'turn.ended') shown.append('agent: ' + (payload.failure?.message ?? payload.reply) + '\\n');
  };
  form.onsubmit = (event) => {
    event.preventDefault();
    fetch('/chats/support', { method: 'POST', body: input.value, headers: { 'idempotency-key': crypto.randomUUID() } });
    form.reset();
  };
</script>`;

const server = createServer((request, response) => {
  answer(request, response).catch((error: unknown) => {
    if (response.headersSent) return void response.destroy(); // a stream: the browser reconnects
    const known = error instanceof ThroughlineError;
    if (!known) console.error(error); // only logged: one bad request must not end the app
    const { code, message, hint } = known
      ? error
      : { code: 'internal', message: 'This did not work.', hint: undefined };
    json(response, statusOf(error), { code, message, hint });
  });
});
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  const address = server.address();
  console.log(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`);
});
process.once('SIGTERM', async () => {
  server.closeAllConnections();
  server.close();
  await tl.close();
});
