import { PROTOCOL_VERSION, RequestError } from '@agentclientprotocol/sdk';
import { asSentence, ThroughlineError } from '../../../core/errors.ts';
import type { Opened, OpenHow, OpenRequest } from '../../../ports/agent.ts';
import { isAuthRequired, refusalOf, Unfit, wordsOf } from '../connection/answers.ts';
import { asObject, type Capabilities, capabilitiesOf } from '../connection/capabilities.ts';
import { type AcpConnection, AgentGone } from '../connection/connection.ts';
import type { NoToolsProfile, StartProfile } from '../known/profiles.ts';
import type { AcpOptions } from '../options.ts';
import { AcpSession } from '../session/session.ts';
import { CLIENT_CAPABILITIES } from '../tools/client.ts';
import { isAnother, loadSession, OPENED_ANOTHER } from './load.ts';
import { applySettings } from './session-settings.ts';

/** All that opening needs to know of the agent. */
export interface Opener {
  readonly name: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly model: string | null;
  readonly options: AcpOptions;
  /** How a person logs in; for messages. */
  readonly login: string;
  /** It was started, and can do this. */
  saw(capabilities: Capabilities): void;
  /** What the version that was last seen has to be started with so that no tool can run; null: nothing would do. */
  readonly starting: StartProfile | null;
  /** Null: this very version has none. */
  profile(capabilities: Capabilities): NoToolsProfile | null;
  /** Whether this version is believed to open sessions without what they were told. */
  readonly lies: boolean;
  /** It said that a session is loaded which lacks what it was told. */
  lacked(session: string, detail: string): void;
  /** It loaded a session that has what it was told. */
  loaded(): void;
  onWindow(tokens: number): void;
}

/** Starts the agent and opens one session in it. Whatever does not end in an open session ends the process. */
export async function openSession(request: OpenRequest, opener: Opener): Promise<Opened> {
  const { how, sandbox, signal } = request;
  if (how.kind === 'rehydrate') return refused('this agent reads no transcript of ours');
  if (how.kind === 'resume' && how.id === '') return { ok: false, reason: 'not_found', message: 'it has no id' };
  if (signal.aborted) return refused('opening was cancelled');
  const starting = request.noTools ? opener.starting : null;
  const command = [...opener.command, ...(starting?.args(sandbox.work) ?? [])];
  const child = await sandbox.spawn(command, { env: { ...opener.env, ...starting?.env } });
  const memo = how.kind === 'resume' ? (how.memo ?? null) : null;
  const session = new AcpSession({ child, sandbox, options: opener.options, memo, onWindow: opener.onWindow });
  const stop = () => child.kill('SIGKILL');
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const late = stopLate(session.connection, opener.options.openMs);
  try {
    const opened = await opening(session, request, how, opener, starting);
    if (opened.ok && !signal.aborted) return opened;
    await session.kill();
    return signal.aborted ? refused('opening was cancelled') : opened;
  } catch (error) {
    await session.kill();
    if (signal.aborted) return refused('opening was cancelled');
    if (isAuthRequired(error)) throw notLoggedIn(opener, error);
    if (error instanceof RequestError || error instanceof Unfit) return refusalOf(error);
    // Neither the agent's doing nor its words: a fault of the store, or our own.
    if (!(error instanceof AgentGone)) throw error;
    // Another way of restoring may still work; a new session is the last of them.
    if (how.kind === 'resume') return refused(wordsOf(error));
    throw notStarted(opener, session.connection, error);
  } finally {
    clearTimeout(late);
    signal.removeEventListener('abort', stop);
  }
}

async function opening(
  session: AcpSession,
  { sandbox, noTools }: OpenRequest,
  how: Exclude<OpenHow, { kind: 'rehydrate' }>,
  opener: Opener,
  starting: StartProfile | null,
): Promise<Opened> {
  const { options } = opener;
  const can = await initialize(session.connection);
  opener.saw(can);
  session.isOf(can);
  if (options.auth !== null) await session.connection.request('authenticate', { methodId: options.auth });
  const profile = noTools ? opener.profile(can) : null;
  // What it was started with was chosen for the version that was last seen.
  const applies = profile !== null && (profile.kind !== 'start' || profile === starting);
  if (noTools && !applies) return refused(`${can.name} ${can.version} has no profile without tools that is proved`);
  if (options.directories.length > 0 && !can.directories) return refused('this agent takes no further directories');
  const types = options.mcpServers.flatMap((server) => ('type' in server ? server.type : []));
  const other = types.find((type) => !can.servers.includes(type));
  if (other !== undefined) return refused(`this agent takes no MCP server of the type "${other}"`);
  session.client.withoutTools = noTools;
  const place = {
    cwd: sandbox.work,
    // Their tools are tools as well.
    mcpServers: noTools ? [] : options.mcpServers,
    ...(options.directories.length > 0 ? { additionalDirectories: options.directories } : {}),
    ...(profile?.kind === 'meta' ? { _meta: profile.meta } : {}),
  };
  if (how.kind === 'new') {
    const response = asObject(await session.connection.request('session/new', place));
    if (typeof response.sessionId !== 'string' || response.sessionId === '') {
      return refused('the agent opened a session without an id');
    }
    session.named(response.sessionId);
    const { startupInfo } = asObject(asObject(response._meta).piAcp);
    if (typeof startupInfo === 'string') session.updates.greets(startupInfo);
    await applySettings(session, response, opener, profile);
    return { ok: true, session, proof: 'counted' };
  }
  session.named(how.id);
  if (can.load && !opener.lies) return loadSession(session, place, how, opener, profile);
  if (!can.resume || opener.lies) return refused('this agent cannot open a session again');
  const response = await session.connection.request('session/resume', { ...place, sessionId: how.id });
  if (isAnother(response, how.id)) return { ok: false, reason: 'not_found', message: OPENED_ANOTHER };
  await applySettings(session, asObject(response), opener, profile);
  return { ok: true, session, proof: 'none' };
}

/** Ends an agent that does not answer in time, and says so. */
export function stopLate(connection: AcpConnection, ms: number): NodeJS.Timeout {
  return setTimeout(() => connection.stop(`it did not answer within ${ms} ms ("openMs" in its options)`), ms);
}

/** The first words to any agent. Throws what it answers, or `Unfit` when it speaks another version. */
export async function initialize(connection: AcpConnection): Promise<Capabilities> {
  const response = await connection.request('initialize', {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: CLIENT_CAPABILITIES,
    clientInfo: { name: 'throughline', version: '1' },
  });
  const { protocolVersion } = asObject(response);
  if (protocolVersion !== PROTOCOL_VERSION) {
    throw new Unfit(`it speaks version ${protocolVersion} of the protocol, and not ${PROTOCOL_VERSION}`);
  }
  return capabilitiesOf(response);
}

export function refused(message: string): Extract<Opened, { ok: false }> {
  return { ok: false, reason: 'refused', message };
}

export function notLoggedIn({ name, login }: Pick<Opener, 'name' | 'login'>, error: unknown): ThroughlineError {
  return new ThroughlineError('agent_unavailable', `${name} wants somebody to log in: ${wordsOf(error)}.`, {
    hint: asSentence(`${login.charAt(0).toUpperCase()}${login.slice(1)}`),
  });
}

export function notStarted(
  { name, command }: Pick<Opener, 'name' | 'command'>,
  { noise }: Pick<AcpConnection, 'noise'>,
  error: unknown,
  didNot = 'did not open a session',
) {
  const printed = noise === null ? '' : ' What it prints is not the Agent Client Protocol.';
  return new ThroughlineError('agent_unavailable', `${name} ${didNot}: ${wordsOf(error)}.${printed}`, {
    hint: `Run "${command.join(' ')}" by hand to see what it says.`,
  });
}
