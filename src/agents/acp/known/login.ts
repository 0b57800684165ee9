import type { Login } from '../../../ports/agent.ts';
import { isAuthRequired, wordsOf } from '../connection/answers.ts';
import { asObject, type Capabilities } from '../connection/capabilities.ts';
import { AgentGone } from '../connection/connection.ts';
import type { KnownAgent } from './known.ts';
import { type ProbeRequest, type Probing, probing } from './probe.ts';

export interface LoginRequest extends ProbeRequest {
  /** The way to log in that is asked for first; null: none. */
  readonly auth: string | null;
  /** What is known of the agent; null: nothing. */
  readonly known: Pick<KnownAgent, 'opensForAnybody'> | null;
  saw(capabilities: Capabilities): void;
}

/**
 * Whether somebody is logged in, as far as it shows: agents say so by refusing to open a session. So one is opened, in a folder
 * that is gone afterwards, and nothing is asked in it. Throws `agent_unavailable`.
 */
export function loginOf(request: LoginRequest): Promise<Login> {
  return probing(request, (agent) => lookInto(agent, request));
}

async function lookInto(agent: Probing, request: LoginRequest): Promise<Login> {
  const { connection, can, folder: cwd } = agent;
  request.saw(can);
  let status: unknown;
  try {
    if (request.auth !== null) await connection.request('authenticate', { methodId: request.auth });
    const { sessionId } = asObject(await connection.request('session/new', { cwd, mcpServers: [] }));
    // One that offers no way to log in may still say how things stand, and some do so only after the session is open.
    status = await agent.hear('_auth/status_update', can.auth.length > 0 ? 0 : STATUS_MS);
    await forget(agent, sessionId);
  } catch (error) {
    if (error instanceof AgentGone) throw error;
    if (isAuthRequired(error)) return { loggedIn: false, hint: request.login };
    return { loggedIn: null, hint: `it opens no session: ${wordsOf(error)}` };
  }
  const { kind } = asObject(asObject(status).authStatus);
  if (typeof kind === 'string') return kind === 'none' ? { loggedIn: false, hint: request.login } : LOGGED_IN;
  // One that knows no way to log in does not refuse anybody.
  return can.auth.length > 0 && !request.known?.opensForAnybody
    ? LOGGED_IN
    : { loggedIn: null, hint: 'it does not say' };
}

/** How long it may take to say so. */
const STATUS_MS = 2_000;
const LOGGED_IN: Login = { loggedIn: true, hint: null };

/** Nobody is to find a session that nothing was said in. Whatever the agent answers, its process is ended next. */
async function forget({ connection, can }: Probing, sessionId: unknown): Promise<void> {
  const method = can.delete ? 'session/delete' : can.close ? 'session/close' : null;
  if (method !== null) await connection.request(method, { sessionId }).catch(() => {});
}
