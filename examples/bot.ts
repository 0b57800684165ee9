// A chat bot on webhooks. A message is stored before it is acknowledged, runs once, and is answered even if the bot is killed in between.
// node examples/bot.ts HOME CHAT-URL: the chat posts {id, thread, text} to this bot, and accepts {id, thread, text} at CHAT-URL.
import { createServer, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { type Answer, open, statusOf, ThroughlineError, TurnError } from 'throughline';

type Message = Readonly<Record<'id' | 'thread' | 'text', string>>;

const [home = '', chatUrl = ''] = process.argv.slice(2);
const tl = await open({ home, settings: { agents: { scripted: { adapter: 'scripted' } } } });

const delivering = new Set<string>();

/** Posts an answer into its thread, then reports that. A bot that dies in between posts again under the same id. */
async function deliver(answer: Answer): Promise<void> {
  const { turn } = await answer.accepted;
  if (delivering.has(turn.id)) return;
  delivering.add(turn.id);
  try {
    const text = await answer.then(({ reply }) => reply, apologyFor);
    const message = { id: turn.id, thread: turn.options.deliverTo, text };
    const posted = await fetch(chatUrl, { method: 'POST', body: JSON.stringify(message) });
    if (!posted.ok) throw new Error(`The chat answered ${posted.status}.`);
    await answer.delivered();
  } catch (error) {
    console.error(`Not delivered yet: ${error}`); // it stays pending
  } finally {
    delivering.delete(turn.id);
  }
}

function apologyFor(error: unknown): string {
  if (error instanceof TurnError) return `That did not work: ${error.message}`;
  throw error;
}

/** Delivers what was accepted but not delivered: the bot was killed, or the chat could not be reached. */
async function catchUp(): Promise<void> {
  try {
    for (const answer of await tl.pending()) void deliver(answer);
  } catch (error) {
    console.error(`Tried again in half a minute: ${error}`);
  }
}

async function messageIn(request: IncomingMessage): Promise<Message> {
  const body: unknown = await json(request).catch(() => null);
  const isText = (name: string) => typeof Object(body)[name] === 'string';
  if (['id', 'thread', 'text'].every(isText)) return body as Message;
  throw new ThroughlineError('invalid', 'A message is JSON with the texts "id", "thread" and "text".');
}

const server = createServer(async (request, response) => {
  try {
    const { id, thread, text } = await messageIn(request);
    // The chat sends a message again until it is acknowledged. The same id is the same turn.
    const answer = tl.conversation(thread, { agent: 'scripted' }).send(text, { requestId: id, deliverTo: thread });
    const { duplicate } = await answer.accepted; // stored
    response.writeHead(200).end();
    if (!duplicate) await deliver(answer);
  } catch (error) {
    response.writeHead(statusOf(error)).end(String(error));
  }
});

await catchUp();
setInterval(() => void catchUp(), 30_000).unref();
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  const address = server.address();
  console.log(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`);
});
process.once('SIGTERM', async () => {
  server.close();
  await tl.close();
});
