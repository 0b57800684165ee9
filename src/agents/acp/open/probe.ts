import { isObject } from '../../../core/turn/content.ts';
import type { Login, NativeSession } from '../../../ports/agent.ts';
import type { OpenSandbox } from '../../../ports/sandbox.ts';
import { asObject } from '../../shared/json.ts';
import { isAuthRequired, wordsOf } from '../connection/answers.ts';
import { AcpConnection, AgentGone } from '../connection/connection.ts';
import { initialize, notLoggedIn, notStarted, withinTime } from '../connection/start.ts';
import type { AgentProgram, LoginStatus, Quirks } from '../known/description.ts';
import { quirksOf } from '../known/known.ts';
import type { Learnt } from '../known/memory.ts';

/*
 * Starts an agent outside of any conversation and ends it again: to see what it can do, whether somebody is logged in, and which
 * sessions it has. Nothing is sent to its model.
 */

/** An agent that was started for a look. */
interface Probing {
  readonly connection: AcpConnection;
  readonly can: Learnt;
  readonly quirks: Quirks;
  /** Calls `watcher` with every further notification. */
  watch(watcher: (method: string, params: unknown) => void): void;
}

/**
 * Starts the agent, looks at it, and ends it, also when the signal is aborted. Throws `agent_unavailable`.
 *
 * Agents read settings from the folder that they are started in and above it. So the default folder is not a working directory, which may
 * be somebody's project.
 */
export async function probing<T>(
  program: AgentProgram,
  sandbox: OpenSandbox,
  look: (agent: Probing) => Promise<T>,
  { cwd = sandbox.state, signal }: { readonly cwd?: string; readonly signal?: AbortSignal } = {},
): Promise<T> {
  const child = await sandbox.spawn(program.command, { cwd, env: program.env });
  let quirks: Quirks = {};
  let watcher: Parameters<Probing['watch']>[0] = () => {};
  const watch: Probing['watch'] = (other) => {
    watcher = other;
  };
  const connection = new AcpConnection(child, {
    notification: (method, params) => watcher(method, params),
    request: async () => {
      throw new Error('no session is open');
    },
  });
  try {
    return await withinTime(program.options, signal, connection, async () => {
      const can = program.memory.saw(await initialize(connection));
      quirks = quirksOf(can.name, program.knownAs);
      return look({ connection, can, quirks, watch });
    });
  } catch (error) {
    if (isAuthRequired(error, quirks)) throw notLoggedIn(program, error);
    throw notStarted(program, connection, error, 'did not answer as an ACP agent does');
  } finally {
    await connection.kill();
  }
}

/**
 * Whether somebody is logged in. Agents show that by opening a session or refusing to. So one is opened, in the working directory, and
 * gets no prompt. Throws `agent_unavailable`.
 */
export function loginOf(program: AgentProgram, sandbox: OpenSandbox, signal: AbortSignal): Promise<Login> {
  const { work: cwd } = sandbox;
  return probing(program, sandbox, (agent) => tryLogin(agent, program, cwd), { cwd, signal });
}

async function tryLogin(agent: Probing, { options, login }: AgentProgram, cwd: string): Promise<Login> {
  const { connection, can, quirks } = agent;
  const status = quirks.loginStatus === undefined ? null : watchStatus(agent, quirks.loginStatus);
  let loggedIn: boolean | null;
  try {
    if (options.auth !== null) await connection.request('authenticate', { methodId: options.auth });
    const { sessionId } = asObject(await connection.request('session/new', { cwd, mcpServers: [] }));
    loggedIn = (await status?.()) ?? null;
    await forget(agent, sessionId);
  } catch (error) {
    if (error instanceof AgentGone) throw error;
    if (isAuthRequired(error, quirks)) return { loggedIn: false, hint: login };
    return { loggedIn: null, hint: `it does not open a session: ${wordsOf(error)}` };
  }
  // An agent without a way to log in opens a session for anybody, so that proves nothing.
  const refuses = can.auth.length > 0 && !quirks.opensForAnybody;
  if (loggedIn ?? refuses) return { loggedIn: true, hint: null };
  return loggedIn === false ? { loggedIn, hint: login } : { loggedIn: null, hint: 'the agent does not report it' };
}

const STATUS_MS = 2_000;

/**
 * Returns a function that gives the last status. An agent without a way to log in may still send one, perhaps only after the session
 * is open, so the function waits for it.
 */
function watchStatus(agent: Probing, { method, loggedIn }: LoginStatus): () => Promise<boolean | null> {
  const first = Promise.withResolvers<void>();
  let last: unknown = null;
  agent.watch((notified, params) => {
    if (notified !== method) return;
    last = params;
    first.resolve();
  });
  return async () => {
    const late = setTimeout(first.resolve, agent.can.auth.length > 0 ? 0 : STATUS_MS);
    await first.promise;
    clearTimeout(late);
    return loggedIn(last);
  };
}

/** Removes the empty session. Whatever the agent answers, its process is ended next. */
async function forget({ connection, can }: Probing, sessionId: unknown): Promise<void> {
  const method = can.delete ? 'session/delete' : can.close ? 'session/close' : null;
  if (method !== null) await connection.request(method, { sessionId }).catch(() => {});
}

const MOST_PAGES = 50;

/** The agent's own sessions of this directory that it may open; null: it cannot list them. Throws `agent_unavailable`. */
export function listSessions(
  program: AgentProgram,
  sandbox: OpenSandbox,
  signal: AbortSignal,
): Promise<NativeSession[] | null> {
  const look = async ({ connection, can, quirks }: Probing) => {
    if (!can.list) return null;
    const { auth } = program.options;
    if (auth !== null) await connection.request('authenticate', { methodId: auth });
    const listed = await pagesOf(connection, sandbox.work);
    const { whyNotOpened } = quirks;
    if (whyNotOpened === undefined) return listed;
    // A session that this program would damage is not offered.
    const reasons = await Promise.all(listed.map(({ id }) => whyNotOpened(id, can, { sandbox, env: program.env })));
    return listed.filter((_, i) => reasons[i] === null);
  };
  return probing(program, sandbox, look, { signal });
}

async function pagesOf(connection: AcpConnection, cwd: string): Promise<NativeSession[]> {
  const all: NativeSession[] = [];
  let cursor: unknown;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const answer = asObject(await connection.request('session/list', { cwd, ...(page > 0 && { cursor }) }));
    const sessions = Array.isArray(answer.sessions) ? answer.sessions.filter(isObject) : [];
    all.push(...sessions.flatMap((session) => sessionOf(session, cwd)));
    cursor = answer.nextCursor;
    if (typeof cursor !== 'string' || cursor === '') break;
  }
  return all;
}

/** Empty for a session of another directory: some agents list those as well. */
function sessionOf({ sessionId, cwd, title, updatedAt }: Record<string, unknown>, wanted: string): NativeSession[] {
  if (typeof sessionId !== 'string' || (typeof cwd === 'string' && cwd !== wanted)) return [];
  const time = typeof updatedAt === 'string' ? Date.parse(updatedAt) : Number.NaN;
  return [
    { id: sessionId, title: typeof title === 'string' ? title : null, updatedAt: Number.isNaN(time) ? null : time },
  ];
}
