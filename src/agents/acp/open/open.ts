import { RequestError } from '@agentclientprotocol/sdk';
import { isObject } from '../../../core/turn/content.ts';
import type { Opened, OpenHow, OpenRequest } from '../../../ports/agent.ts';
import { isAuthRequired, refusalOf, refused, Unsuitable, wordsOf } from '../connection/answers.ts';
import { asObject, type Capabilities } from '../connection/capabilities.ts';
import { AgentGone } from '../connection/connection.ts';
import { initialize, notLoggedIn, notStarted, withinTime } from '../connection/start.ts';
import type { AgentProgram, NoToolsProfile, StartProfile } from '../known/description.ts';
import { profileOf, quirksOf } from '../known/known.ts';
import { type AgentMemory, whyNotReopened } from '../known/memory.ts';
import { AcpSession } from '../session/session.ts';
import { type Answered, isAnother, loadSession, OPENED_ANOTHER, type Refusal } from './load.ts';

/** All that opening needs to know of the agent. */
export interface Opener extends AgentProgram {
  readonly model: string | null;
  readonly memory: AgentMemory;
}

/** Starts the agent and opens one session in it. If that fails, the process is ended. */
export async function openSession(request: OpenRequest, opener: Opener): Promise<Opened> {
  const { how, sandbox, signal } = request;
  if (how.kind === 'rehydrate') return refused('this agent reads no transcript of ours');
  if (how.kind === 'resume' && how.id === '') return { ok: false, reason: 'not_found', message: 'it has no id' };
  if (signal.aborted) return refused('opening was cancelled');
  const startProfile = request.noTools ? startProfileOf(opener) : null;
  const command = [...opener.command, ...(startProfile?.args(sandbox.work) ?? [])];
  const child = await sandbox.spawn(command, { env: { ...opener.env, ...startProfile?.env } });
  const session = new AcpSession({
    child,
    sandbox,
    options: opener.options,
    memo: how.kind === 'resume' ? (how.memo ?? null) : null,
    onWindow: (tokens) => opener.memory.window(opener.name, tokens),
  });
  try {
    const opened = await withinTime(opener.options, signal, session.connection, () =>
      opening(session, request, how, opener, startProfile),
    );
    if (opened.ok && !signal.aborted) return opened;
    await session.kill();
    return signal.aborted ? refused('opening was cancelled') : opened;
  } catch (error) {
    await session.kill();
    if (signal.aborted) return refused('opening was cancelled');
    if (isAuthRequired(error, session.quirks)) throw notLoggedIn(opener, error);
    if (error instanceof RequestError || error instanceof Unsuitable) return refusalOf(error);
    // Not the agent's fault: the store's, or our own.
    if (!(error instanceof AgentGone)) throw error;
    // Another way of restoring may still work. A new session is the last one.
    if (how.kind === 'resume') return refused(wordsOf(error));
    throw notStarted(opener, session.connection, error, 'did not open a session');
  }
}

/** What the version that was seen last has to be started with so that no tool can run; null: it needs nothing, or has no profile. */
function startProfileOf(opener: Opener): StartProfile | null {
  const profile = opener.memory.learnt && profileOf(opener.memory.learnt, opener);
  return profile?.kind === 'start' ? profile : null;
}

async function opening(
  session: AcpSession,
  { sandbox, noTools }: OpenRequest,
  how: Exclude<OpenHow, { kind: 'rehydrate' }>,
  opener: Opener,
  startProfile: StartProfile | null,
): Promise<Opened> {
  const { options } = opener;
  const can = await initialize(session.connection);
  opener.memory.saw(can);
  session.isOf(can, quirksOf(can.name, opener.knownAs));
  if (options.auth !== null) await session.connection.request('authenticate', { methodId: options.auth });
  const profile = noTools ? profileOf(can, opener) : null;
  // The program was started for the version that was seen last; this one may be another.
  const applies = profile !== null && (profile.kind !== 'start' || profile === startProfile);
  if (noTools && !applies) return refused(`${can.name} ${can.version} has no proved profile without tools`);
  const lacks = missingFor(options, can);
  if (lacks !== null) return refused(lacks);
  if (noTools) session.forbidTools();
  const place = {
    cwd: sandbox.work,
    // The tools of MCP servers are tools as well.
    mcpServers: noTools ? [] : options.mcpServers,
    ...(options.directories.length > 0 ? { additionalDirectories: options.directories } : {}),
    ...(profile?.kind === 'meta' ? { _meta: profile.meta } : {}),
  };
  const answered =
    how.kind === 'new' ? await makeSession(session, place) : await reopen(session, place, how, can, opener);
  if ('ok' in answered) return answered;
  await applySettings(session, answered.response, opener, profile);
  return { ok: true, session, proof: answered.proof };
}

/** What the settings ask for and the agent does not support; null: nothing. */
function missingFor({ directories, mcpServers }: Opener['options'], can: Capabilities): string | null {
  if (directories.length > 0 && !can.directories) return 'this agent takes no additional directories';
  const types = mcpServers.flatMap((server) => ('type' in server ? server.type : []));
  const other = types.find((type) => !can.servers.includes(type));
  return other === undefined ? null : `this agent takes no MCP server of the type "${other}"`;
}

async function makeSession(session: AcpSession, place: object): Promise<Refusal | Answered> {
  const response = asObject(await session.connection.request('session/new', place));
  if (typeof response.sessionId !== 'string' || response.sessionId === '') {
    return refused('the agent opened a session without an id');
  }
  session.named(response.sessionId);
  session.updates.banner = session.quirks.banner?.(response) ?? null;
  return { response, proof: 'counted' };
}

async function reopen(
  session: AcpSession,
  place: object,
  how: Extract<OpenHow, { kind: 'resume' }>,
  can: Capabilities,
  opener: Opener,
): Promise<Refusal | Answered> {
  session.named(how.id);
  const { learnt } = opener.memory;
  const trusted = learnt === null || whyNotReopened(learnt) === null;
  if (!trusted || !(can.load || can.resume)) return refused('this agent cannot open a session again');
  if (can.load) return loadSession(session, place, how, opener);
  const response = asObject(await session.connection.request('session/resume', { ...place, sessionId: how.id }));
  return isAnother(response, how.id) ? OPENED_ANOTHER : { response, proof: 'none' };
}

/**
 * Sets the model, the config options and the mode that the settings name. Agents forget some of them when they load a session, so
 * they are set every time. Throws what the agent answers: what a person set is used or refused (R7).
 */
async function applySettings(
  session: AcpSession,
  response: Readonly<Record<string, unknown>>,
  { model, options }: Opener,
  profile: NoToolsProfile | null,
): Promise<void> {
  const { connection, id: sessionId } = session;
  const config = { ...(model === null ? {} : { [modelOption(response)]: model }), ...options.config };
  for (const [configId, value] of Object.entries(config)) {
    await connection.request('session/set_config_option', { sessionId, configId, value });
  }
  const setMode = (modeId: string) => connection.request('session/set_mode', { sessionId, modeId });
  if (profile?.kind !== 'mode') {
    if (options.mode !== null) await setMode(options.mode);
    return;
  }
  const { currentModeId } = asObject(response.modes);
  const usual = options.mode ?? (typeof currentModeId === 'string' ? currentModeId : null);
  await setMode(profile.mode);
  session.isInModeWithoutTools({
    mode: profile.mode,
    async leave() {
      if (usual === null) throw new Unsuitable('the agent did not say which mode it was in');
      await setMode(usual);
    },
    // MCP servers are named when a session is opened, and this one was opened without them.
    leavesAllSet: options.mcpServers.length === 0,
  });
}

function modelOption({ configOptions }: Readonly<Record<string, unknown>>): string {
  const all = Array.isArray(configOptions) ? configOptions.filter(isObject) : [];
  const id = (all.find(({ category }) => category === 'model') ?? all.find((one) => one.id === 'model'))?.id;
  if (typeof id !== 'string') throw new Unsuitable('this agent has no setting for its model; leave "model" out');
  return id;
}
