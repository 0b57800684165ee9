// A small agent that speaks the Agent Client Protocol. It sends all messages of its session to the stand-in model, runs its only tool,
// and stores its sessions as files in its home. The program that calls `runAgent` chooses how it loads them.
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
  /** How it answers `session/load`; left out: it does not support that. */
  readonly load?: Load;
  /** Supports `session/resume`, which opens a session without sending its history. */
  readonly resume?: boolean;
  /** The ids that `session/list` returns, for any directory; left out: it does not support that. */
  readonly listedSessions?: readonly string[];
  /** The error for a session that it does not have. */
  readonly notFound?: (id: string) => Error;
  /** Asks for a permission before every tool. */
  readonly asksPermission?: boolean;
  /** Leaves the mode that the client has set, as soon as it gets a prompt. */
  readonly leavesMode?: boolean;
  /**
   * Uses the client's terminal and files when no turn runs: when a session is made or loaded, and after a turn. It runs this command,
   * writes a file and reads one.
   */
  readonly actsBetweenTurns?: string;
  /** Ignores `session/cancel`. */
  readonly ignoresCancel?: boolean;
  /** Runs its tool in a terminal of the client. */
  readonly terminal?: boolean;
  readonly embeddedContext?: boolean;
  readonly image?: boolean;
  /** Whether somebody is logged in; left out: it needs no login. */
  readonly loggedIn?: boolean;
}

/**
 * - `complete`: it sends the whole history, and then its answer.
 * - `late`: it answers first. `half late`: it answers in the middle of the history.
 * - `empty`, `truncated`, `text only`: it has nothing of the history, only the first turn, or no files and images.
 * - `wrong`: it has the history of another session.
 * - `hangs`: it never answers if the history contains a line separator (U+2028, U+2029), as agents do whose own lines break there.
 * - `exits`: its process ends before the answer. `exits later`: its process ends after the answer, without the history.
 */
type Load =
  | 'complete'
  | 'late'
  | 'half late'
  | 'empty'
  | 'truncated'
  | 'text only'
  | 'wrong'
  | 'hangs'
  | 'exits'
  | 'exits later';

export interface Session {
  readonly id: string;
  readonly cwd: string;
  readonly messages: Message[];
  /** `quiet`: the model is offered no tool, and none runs. */
  mode: string;
  abort: AbortController | null;
}

const folder = () => join(process.env.HOME ?? '', '.acp-agent');
const fileOf = (id: string) => join(folder(), `${id}.json`);
const isId = (id: string) => /^[0-9a-f-]{36}$/.test(id);

export function runAgent(behaviour: Behaviour): void {
  // Node writes its compile cache only at a normal exit, and tests kill most of these processes.
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
        sessionCapabilities: { ...(behaviour.resume && { resume: {} }), ...(behaviour.listedSessions && { list: {} }) },
      },
      authMethods: behaviour.loggedIn === undefined ? [] : [{ id: 'browser', name: 'Browser' }],
      agentInfo: { name: behaviour.name, version: behaviour.version ?? '1.0.0' },
    }))
    .onRequest('session/new', async ({ params }) => {
      await actBetweenTurns(params.cwd);
      if (behaviour.loggedIn === false) throw RequestError.authRequired();
      const session: Session = { id: randomUUID(), cwd: params.cwd, messages: [], mode: 'usual', abort: null };
      sessions.set(session.id, session);
      return { sessionId: session.id, modes };
    })
    .onRequest('session/load', async ({ params }) => {
      await actBetweenTurns(params.cwd);
      if (behaviour.load === 'exits') process.exit(3);
      if (behaviour.load === 'exits later') {
        setTimeout(() => process.exit(3), 50);
        return { modes };
      }
      const notFound = behaviour.notFound ?? RequestError.resourceNotFound;
      const stored = isId(params.sessionId) ? readSession(params.sessionId) : null;
      if (stored === null) throw notFound(params.sessionId);
      const messages = historyFor(behaviour.load, stored);
      if (behaviour.load === 'hangs' && /[\u2028\u2029]/.test(JSON.stringify(messages))) return new Promise(() => {});
      sessions.set(params.sessionId, {
        id: params.sessionId,
        cwd: params.cwd,
        messages: [...messages],
        mode: 'usual',
        abort: null,
      });
      const send = (part = messages) => sendHistory(params.sessionId, part, sendUpdate);
      if (behaviour.load === 'late') setTimeout(send, 150);
      else if (behaviour.load === 'half late') {
        const half = Math.ceil(messages.length / 4) * 2;
        await send(messages.slice(0, half));
        setTimeout(() => send(messages.slice(half)), 100);
      } else await send();
      return { modes };
    })
    .onRequest('session/resume', ({ params: { sessionId: id, cwd } }) => {
      const messages = isId(id) ? readSession(id) : null;
      if (messages === null) throw RequestError.resourceNotFound(id);
      sessions.set(id, { id, cwd, messages, mode: 'usual', abort: null });
      return { modes };
    })
    .onRequest('session/list', ({ params }) => ({
      sessions: (behaviour.listedSessions ?? []).map((sessionId) => ({ sessionId, cwd: params.cwd ?? '/' })),
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
      saveSession(session);
      if (behaviour.leavesMode && session.mode !== 'usual') {
        session.mode = 'usual';
        await sendUpdate(session.id, { sessionUpdate: 'current_mode_update', currentModeId: 'usual' });
      }
      try {
        await answer(session, behaviour, connection, sendUpdate);
      } catch (error) {
        if (session.abort.signal.aborted) return { stopReason: 'cancelled' };
        throw RequestError.internalError(undefined, (error as Error).message);
      } finally {
        saveSession(session);
        setImmediate(() => void actBetweenTurns(session.cwd));
      }
      return { stopReason: session.abort.signal.aborted ? 'cancelled' : 'end_turn' };
    })
    .onNotification('session/cancel', ({ params }) => {
      if (!behaviour.ignoresCancel) sessions.get(params.sessionId)?.abort?.abort();
    })
    .connect(
      ndJsonStream(
        Writable.toWeb(process.stdout) as WritableStream<Uint8Array>,
        Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>,
      ),
    );
  const actBetweenTurns = async (cwd: string) => {
    const { actsBetweenTurns: command } = behaviour;
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
  const sendUpdate = (sessionId: string, update: SessionUpdate) =>
    connection.client.notify('session/update', { sessionId, update });
}

export type SendUpdate = (sessionId: string, update: SessionUpdate) => Promise<void>;

const OTHER_HISTORY: readonly Message[] = [
  { role: 'user', content: [{ type: 'text', text: 'Somebody else said this.' }] },
  { role: 'assistant', content: [{ type: 'text', text: 'And was told that.' }] },
];

/** What the agent has of a stored history after it has loaded it. */
function historyFor(load: Load | undefined, stored: readonly Message[]): readonly Message[] {
  switch (load) {
    case 'empty':
      return [];
    case 'truncated':
      return stored.slice(0, 2);
    case 'wrong':
      return OTHER_HISTORY;
    case 'text only':
      return stored.map(withTextOnly);
    default:
      return stored;
  }
}

async function answer(
  session: Session,
  behaviour: Behaviour,
  connection: AgentConnection,
  sendUpdate: SendUpdate,
): Promise<void> {
  const signal = session.abort?.signal ?? AbortSignal.abort();
  for (;;) {
    const onText = (text: string) =>
      sendUpdate(session.id, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
    const content = await askModel(session.messages, { tools: session.mode !== 'quiet', signal, onText });
    session.messages.push({ role: 'assistant', content });
    saveSession(session);
    const uses = content.filter((block) => block.type === 'tool_use');
    if (uses.length === 0) return;
    for (const use of uses) {
      const result = await runTool(use, session, behaviour, connection, sendUpdate);
      session.messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: result }] });
    }
  }
}

async function sendHistory(sessionId: string, messages: readonly Message[], sendUpdate: SendUpdate): Promise<void> {
  for (const { role, content } of messages) {
    const sessionUpdate = role === 'user' ? 'user_message_chunk' : 'agent_message_chunk';
    for (const block of content) {
      if (block.type === 'text')
        await sendUpdate(sessionId, { sessionUpdate, content: { type: 'text', text: block.text } });
      if (block.type !== 'image') continue;
      const { data, media_type: mimeType } = block.source;
      await sendUpdate(sessionId, { sessionUpdate, content: { type: 'image', data, mimeType } });
    }
  }
}

function saveSession({ id, messages }: Session): void {
  mkdirSync(folder(), { recursive: true });
  writeFileSync(fileOf(id), JSON.stringify(messages));
}

/** Null: the agent has no such session. */
function readSession(id: string): Message[] | null {
  try {
    return JSON.parse(readFileSync(fileOf(id), 'utf8')) as Message[];
  } catch {
    return null;
  }
}

/** The text of a prompt in one block, then its files and images. */
function contentOf(prompt: readonly ContentBlock[], { embeddedContext }: Behaviour): Block[] {
  const more = prompt.flatMap((block): Block[] => {
    if (block.type === 'image')
      return [{ type: 'image', source: { type: 'base64', media_type: block.mimeType, data: block.data } }];
    const text = block.type === 'resource' && 'text' in block.resource ? block.resource.text : null;
    return text === null || !embeddedContext ? [] : [{ type: 'text', text: `\n<file>\n${text}\n</file>` }];
  });
  return [{ type: 'text', text: prompt.map(textOf).join('') }, ...more];
}

/** Without the files and images of prompts: qwen loads its sessions like this. */
function withTextOnly({ role, content }: Message): Message {
  return { role, content: role === 'user' ? content.slice(0, 1) : content };
}

/** Some real agents do the same: no separator between two blocks, and only the address of a resource. */
function textOf(block: ContentBlock): string {
  if (block.type === 'text') return block.text;
  return block.type === 'resource' ? `@${block.resource.uri}` : '';
}
