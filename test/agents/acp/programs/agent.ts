// An agent that speaks the Agent Client Protocol, small enough to be read: it asks the stand-in model with all that its session
// holds, runs the one tool there is, and keeps its sessions as files in its home. How it opens them again is up to the caller.
import { randomUUID } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import {
  type AgentConnection,
  agent,
  type ContentBlock,
  ndJsonStream,
  RequestError,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';
import { askModel, type Block, type Message } from './model.ts';
import { runTool } from './tool.ts';

export interface Behaviour {
  readonly name: string;
  readonly version?: string;
  /** What `session/load` does; left out: there is none. */
  readonly load?:
    | 'honest'
    | 'late'
    | 'half late'
    | 'empty'
    | 'wrong'
    | 'truncated'
    | 'words'
    | 'silent'
    | 'dies'
    | 'leaves';
  /** Opens a session again without repeating it. */
  readonly resume?: boolean;
  /** The ids of the sessions that it lists, in any directory; left out: it lists none. */
  readonly lists?: readonly string[];
  /** How it says that it has no such session. */
  readonly notFound?: (id: string) => Error;
  /** Asks before every tool. */
  readonly asks?: boolean;
  /** Leaves the mode that we set. */
  readonly restless?: boolean;
  /** Runs this command in a terminal of the client's, writes and reads, when a session is made or loaded, and after a turn. */
  readonly eager?: string;
  /** Does not stop when it is asked to. */
  readonly deaf?: boolean;
  /** Runs its tool in a terminal of the client's. */
  readonly terminal?: boolean;
  readonly embeddedContext?: boolean;
  readonly image?: boolean;
  /** Whether somebody is logged in; left out: nobody needs to be. */
  readonly loggedIn?: boolean;
}

export interface Session {
  readonly id: string;
  readonly cwd: string;
  readonly messages: Message[];
  /** `quiet`: no tool is offered, and none runs. */
  mode: string;
  abort: AbortController | null;
}

const folder = () => join(process.env.HOME ?? '', '.acp-agent');
const fileOf = (id: string) => join(folder(), `${id}.json`);
const isId = (id: string) => /^[0-9a-f-]{36}$/.test(id);

export function runAgent(behaviour: Behaviour): void {
  // Node keeps what it compiled only at an exit in good order, and most of these are killed.
  flushCompileCache();
  const sessions = new Map<string, Session>();
  const find = (id: string) => {
    const session = sessions.get(id);
    if (session === undefined) throw RequestError.invalidParams(undefined, `no session ${id} is open`);
    return session;
  };
  const modes = { currentModeId: 'usual', availableModes: ['usual', 'quiet'].map((id) => ({ id, name: id })) };
  const connection: AgentConnection = agent({ name: behaviour.name })
    .onRequest('initialize', () => ({
      protocolVersion: 1,
      agentCapabilities: {
        loadSession: behaviour.load !== undefined,
        promptCapabilities: { embeddedContext: behaviour.embeddedContext === true, image: behaviour.image === true },
        sessionCapabilities: { ...(behaviour.resume && { resume: {} }), ...(behaviour.lists && { list: {} }) },
      },
      authMethods: behaviour.loggedIn === undefined ? [] : [{ id: 'browser', name: 'Browser' }],
      agentInfo: { name: behaviour.name, version: behaviour.version ?? '1.0.0' },
    }))
    .onRequest('session/new', async ({ params }) => {
      await act(params.cwd);
      if (behaviour.loggedIn === false) throw RequestError.authRequired();
      const session: Session = { id: randomUUID(), cwd: params.cwd, messages: [], mode: 'usual', abort: null };
      sessions.set(session.id, session);
      return { sessionId: session.id, modes };
    })
    .onRequest('session/load', async ({ params }) => {
      await act(params.cwd);
      if (behaviour.load === 'dies') process.exit(3);
      if (behaviour.load === 'leaves') {
        setTimeout(() => process.exit(3), 50);
        return { modes };
      }
      const notFound = behaviour.notFound ?? RequestError.resourceNotFound;
      const messages = isId(params.sessionId) ? loaded(params.sessionId) : null;
      if (messages === null) throw notFound(params.sessionId);
      const held = behaviour.load === 'empty' ? [] : behaviour.load === 'truncated' ? messages.slice(0, 2) : messages;
      const said = behaviour.load === 'wrong' ? OTHERS : behaviour.load === 'words' ? held.map(wordsOf) : held;
      // As agents do whose own lines break there.
      if (behaviour.load === 'silent' && /[\u2028\u2029]/.test(JSON.stringify(said))) return new Promise(() => {});
      sessions.set(params.sessionId, {
        id: params.sessionId,
        cwd: params.cwd,
        messages: [...said],
        mode: 'usual',
        abort: null,
      });
      const replaying = (messages = said) => replay(params.sessionId, messages, tell);
      if (behaviour.load === 'late') setTimeout(replaying, 150);
      else if (behaviour.load === 'half late') {
        const half = Math.ceil(said.length / 4) * 2;
        await replaying(said.slice(0, half));
        setTimeout(() => replaying(said.slice(half)), 100);
      } else await replaying();
      return { modes };
    })
    .onRequest('session/resume', ({ params: { sessionId: id, cwd } }) => {
      const messages = isId(id) ? loaded(id) : null;
      if (messages === null) throw RequestError.resourceNotFound(id);
      sessions.set(id, { id, cwd, messages, mode: 'usual', abort: null });
      return { modes };
    })
    .onRequest('session/list', ({ params }) => ({
      sessions: (behaviour.lists ?? []).map((sessionId) => ({ sessionId, cwd: params.cwd ?? '/' })),
    }))
    .onRequest('session/set_mode', ({ params }) => {
      const known = modes.availableModes.some(({ id }) => id === params.modeId);
      if (!known) throw RequestError.invalidParams(undefined, `no mode ${params.modeId}`);
      find(params.sessionId).mode = params.modeId;
      return {};
    })
    .onRequest('session/prompt', async ({ params }) => {
      const session = find(params.sessionId);
      session.abort = new AbortController();
      session.messages.push({ role: 'user', content: contentOf(params.prompt, behaviour) });
      keep(session);
      if (behaviour.restless && session.mode !== 'usual') {
        session.mode = 'usual';
        await tell(session.id, { sessionUpdate: 'current_mode_update', currentModeId: 'usual' });
      }
      try {
        await answer(session, behaviour, connection, tell);
      } catch (error) {
        if (session.abort.signal.aborted) return { stopReason: 'cancelled' };
        throw RequestError.internalError(undefined, (error as Error).message);
      } finally {
        keep(session);
        setImmediate(() => void act(session.cwd));
      }
      return { stopReason: session.abort.signal.aborted ? 'cancelled' : 'end_turn' };
    })
    .onNotification('session/cancel', ({ params }) => {
      if (!behaviour.deaf) sessions.get(params.sessionId)?.abort?.abort();
    })
    .connect(
      ndJsonStream(
        Writable.toWeb(process.stdout) as WritableStream<Uint8Array>,
        Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>,
      ),
    );
  const act = async (cwd: string) => {
    const { eager: command } = behaviour;
    if (command === undefined) return;
    const { client } = connection;
    await client.createTerminal({ sessionId: 'x', command, cwd }).catch(() => {});
    await client
      .request('fs/write_text_file', { sessionId: 'x', path: join(cwd, 'written'), content: '' })
      .catch(() => {});
    const path = join(cwd, 'notes');
    const notes = await client.request('fs/read_text_file', { sessionId: 'x', path });
    appendFileSync(join(cwd, 'read'), `${JSON.stringify(notes)}\n`);
  };
  const tell = (sessionId: string, update: SessionUpdate) =>
    connection.client.notify('session/update', { sessionId, update });
}

export type Tell = (sessionId: string, update: SessionUpdate) => Promise<void>;

const OTHERS: readonly Message[] = [
  { role: 'user', content: [{ type: 'text', text: 'Somebody else said this.' }] },
  { role: 'assistant', content: [{ type: 'text', text: 'And was told that.' }] },
];

async function answer(session: Session, behaviour: Behaviour, connection: AgentConnection, tell: Tell): Promise<void> {
  const signal = session.abort?.signal ?? AbortSignal.abort();
  for (;;) {
    const onText = (text: string) =>
      tell(session.id, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
    const content = await askModel(session.messages, { tools: session.mode !== 'quiet', signal, onText });
    session.messages.push({ role: 'assistant', content });
    keep(session);
    const uses = content.filter((block) => block.type === 'tool_use');
    if (uses.length === 0) return;
    for (const use of uses) {
      const result = await runTool(use, session, behaviour, connection, tell);
      session.messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: result }] });
    }
  }
}

async function replay(sessionId: string, messages: readonly Message[], tell: Tell): Promise<void> {
  for (const { role, content } of messages) {
    const sessionUpdate = role === 'user' ? 'user_message_chunk' : 'agent_message_chunk';
    for (const block of content) {
      if (block.type === 'text') await tell(sessionId, { sessionUpdate, content: { type: 'text', text: block.text } });
      if (block.type !== 'image') continue;
      const { data, media_type: mimeType } = block.source;
      await tell(sessionId, { sessionUpdate, content: { type: 'image', data, mimeType } });
    }
  }
}

function keep({ id, messages }: Session): void {
  mkdirSync(folder(), { recursive: true });
  writeFileSync(fileOf(id), JSON.stringify(messages));
}

function loaded(id: string): Message[] | null {
  try {
    return JSON.parse(readFileSync(fileOf(id), 'utf8')) as Message[];
  } catch {
    return null;
  }
}

/** The text of a prompt in one block, then the files and images of it. */
function contentOf(prompt: readonly ContentBlock[], { embeddedContext }: Behaviour): Block[] {
  const more = prompt.flatMap((block): Block[] => {
    if (block.type === 'image')
      return [{ type: 'image', source: { type: 'base64', media_type: block.mimeType, data: block.data } }];
    const text = block.type === 'resource' && 'text' in block.resource ? block.resource.text : null;
    return text === null || !embeddedContext ? [] : [{ type: 'text', text: `\n<file>\n${text}\n</file>` }];
  });
  return [{ type: 'text', text: prompt.map(textOf).join('') }, ...more];
}

/** As qwen loads a session: without the files and images of its prompts. */
function wordsOf({ role, content }: Message): Message {
  return { role, content: role === 'user' ? content.slice(0, 1) : content };
}

/** Like the least careful real agents: no separator between two blocks, and only the address of a resource. */
function textOf(block: ContentBlock): string {
  if (block.type === 'text') return block.text;
  return block.type === 'resource' ? `@${block.resource.uri}` : '';
}
