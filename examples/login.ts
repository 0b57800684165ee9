// A web app with its own login, in as many processes as you like. All chats of a user share one sandbox, which any process finds again.
// The settings say what kind of sandbox it is, and how it is set up: the app is the same for all of them.
//
// The processes of the app run the agents, on one data home:
//   THROUGHLINE_HOME=… THROUGHLINE_CONFIG=… COOKIE_SECRET=… node examples/login.ts
// Or a server runs them, and one key acts for all users of the app:
//   throughline serve
//   throughline keys create 'the shop' --as shop --scopes act-as,read,prompt --owners 'shop:*'
//   THROUGHLINE_SERVER=$(throughline link --address) THROUGHLINE_TOKEN=tl_… COOKIE_SECRET=… node examples/login.ts
import { createHmac, timingSafeEqual } from 'node:crypto';
import { serve } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { streamSSE } from 'hono/streaming';
import { open, statusOf, type Throughline, ThroughlineError } from 'throughline';

const { THROUGHLINE_SERVER: server, THROUGHLINE_TOKEN: token = '', COOKIE_SECRET: secret = '' } = process.env;
if (secret === '') throw new Error('Set COOKIE_SECRET to a long random text, the same for all processes of the app.');
const tl = await open(server === undefined ? {} : { server, token }); // one for all users

// Replace this by your own users, with hashed passwords.
const passwords = new Map([
  ['ann', 'a heron at dawn'],
  ['bob', 'a wren at noon'],
]);

const app = new Hono<{ Variables: { mine: Throughline } }>();
app.get('/', (c) => c.html(PAGE));
app.post('/login', async (c) => {
  const { name, password } = await c.req.parseBody();
  // An unknown name has no password here. Without one in the request, the two would be equal.
  const isRight = typeof name === 'string' && typeof password === 'string' && passwords.get(name) === password;
  if (!isRight) return c.text('Wrong name or password.', 401);
  // Over https, add `Secure`.
  c.header('set-cookie', `user=${signed(name)}; HttpOnly; SameSite=Strict; Path=/; Max-Age=86400`);
  return c.redirect('/', 303);
});

app.use('/chats/*', async (c, next) => {
  const user = userOf(c.req.header('cookie') ?? ''); // signed by this app: nobody else can name a user
  if (user === null) return c.text('Log in first.', 401);
  c.set('mine', tl.as(`shop:${user}`));
  return next();
});
app.get('/chats/:key', async (c) => c.json(await chat(c).turns()));
app.post('/chats/:key', async (c) => {
  // The browser makes an id for what the person typed, so that sending it again, to any process of the app, is the same turn.
  const requestId = c.req.header('idempotency-key') ?? crypto.randomUUID();
  const { turn, seq } = await chat(c).send(await c.req.text(), { requestId }).accepted; // stored: now it runs, even if this process dies
  return c.json({ turn: turn.id, seq }, 202);
});
app.get('/chats/:key/sandbox', async (c) => c.json(await chat(c).sandbox())); // { owner, sandboxId, conversationId, sessionId }
app.get('/chats/:key/events', async (c) => {
  await chat(c).ensure();
  const after = Number(c.req.header('last-event-id') ?? 0);
  return streamSSE(c, async (stream) => {
    const gone = new AbortController();
    stream.onAbort(() => gone.abort());
    for await (const { seq, ...event } of chat(c).follow({ after, signal: gone.signal })) {
      await stream.writeSSE({ id: String(seq), data: JSON.stringify(event) });
    }
  });
});
app.onError((error, c) => {
  if (!(error instanceof ThroughlineError)) console.error(error);
  const { code, message } =
    error instanceof ThroughlineError ? error : { code: 'internal', message: 'This did not work.' };
  return c.json({ code, message }, statusOf(error) as 500);
});

function signed(name: string): string {
  return `${name}.${createHmac('sha256', secret).update(name).digest('base64url')}`;
}

function userOf(cookies: string): string | null {
  const given = Buffer.from(/(?:^|; )user=([^;]*)/.exec(cookies)?.[1] ?? '');
  const name = given.toString().split('.')[0] ?? '';
  const own = Buffer.from(signed(name));
  return given.length === own.length && timingSafeEqual(given, own) ? name : null;
}

function chat(c: Context<{ Variables: { mine: Throughline } }>) {
  return c.get('mine').conversation(c.req.param('key') ?? '', { sandbox: 'main' });
}

const PAGE = `<!doctype html><title>Shop</title>
<form action="/login" method="post"><input name="name"><input name="password" type="password"><button>Log in</button></form>
<pre></pre><form id="say"><input autofocus></form><script type="module">
  const [shown, form] = [document.querySelector('pre'), document.querySelector('#say')];
  new EventSource('/chats/support/events').onmessage = ({ data }) => {
    const { kind, payload } = JSON.parse(data);
    if (kind === 'turn.queued') shown.append('you: ' + payload.preview + '\\n');
    if (kind === 'turn.ended') shown.append('agent: ' + (payload.failure?.message ?? payload.reply) + '\\n');
  };
  form.onsubmit = (event) => {
    event.preventDefault();
    const headers = { 'idempotency-key': crypto.randomUUID() };
    fetch('/chats/support', { method: 'POST', body: form.elements[0].value, headers });
    form.reset();
  };
</script>`;

const port = Number(process.env.PORT ?? 0);
const listening = serve({ fetch: app.fetch, hostname: '127.0.0.1', port }, (at) => {
  console.log(`http://127.0.0.1:${at.port}`);
});
process.once('SIGTERM', async () => {
  if ('closeAllConnections' in listening) listening.closeAllConnections();
  listening.close();
  await tl.close();
});
