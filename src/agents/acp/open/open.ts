import { RequestError } from '@agentclientprotocol/sdk';
import type { Update } from '../../../core/turn/update.ts';
import type { Opened, OpenHow, OpenRequest } from '../../../ports/agent.ts';
import type { OpenSandbox } from '../../../ports/sandbox.ts';
import { OPENING_CANCELLED, type Refusal, refused } from '../../shared/flight.ts';
import { asObject } from '../../shared/json.ts';
import { isAuthRequired, refusalOf, Unsuitable, wordsOf } from '../connection/answers.ts';
import type { Capabilities } from '../connection/capabilities.ts';
import { AgentGone } from '../connection/connection.ts';
import { initialize, notLoggedIn, notStarted, withinTime } from '../connection/start.ts';
import type { AgentProgram, NoToolsProfile, StartProfile } from '../known/description.ts';
import { profileOf, quirksOf } from '../known/known.ts';
import { whyNotReopened } from '../known/memory.ts';
import type { AcpOptions } from '../options.ts';
import { AcpSession } from '../session/session.ts';
import { type Answered, isAnother, loadSession, OPENED_ANOTHER } from './load.ts';

type AcpOpened = Refusal | (Extract<Opened, { ok: true }> & { readonly session: AcpSession });

/**
 * Starts the agent and opens one session in it. If that fails, the process is ended. `onRepeated`: gets all that the agent repeats
 * of the session; null: nobody reads it.
 */
export async function openSession(
  request: OpenRequest,
  program: AgentProgram,
  onRepeated: ((update: Update) => void) | null = null,
): Promise<AcpOpened> {
  const { how, sandbox, signal } = request;
  if (how.kind === 'rehydrate') return refused('refused', 'this agent cannot read a transcript');
  if (how.kind === 'resume' && how.id === '') return refused('not_found', 'the session id is empty');
  if (signal.aborted) return OPENING_CANCELLED;
  const startProfile = request.noTools ? await startProfileOf(program, sandbox) : null;
  const profileEnv = await startProfile?.env({ sandbox, env: program.env });
  if (profileEnv === null) {
    return refused('refused', `the settings of a project in ${sandbox.work} or above it could run something`);
  }
  const child = await sandbox.spawn(program.command, { env: { ...program.env, ...profileEnv } });
  const session = new AcpSession({
    child,
    sandbox,
    program,
    memo: how.kind === 'resume' ? (how.memo ?? null) : null,
    onRepeated,
    onWindow: (tokens) => program.memory.window(program.name, tokens),
  });
  try {
    const opened = await withinTime(program.options, signal, session.connection, () =>
      opening(session, request, how, program, startProfile),
    );
    if (opened.ok && !signal.aborted) return opened;
    await session.kill();
    return signal.aborted ? OPENING_CANCELLED : opened;
  } catch (error) {
    await session.kill();
    if (signal.aborted) return OPENING_CANCELLED;
    if (isAuthRequired(error, session.quirks)) throw notLoggedIn(program, error);
    if (error instanceof RequestError || error instanceof Unsuitable) return refusalOf(error);
    // Not an error of the agent: the store has failed, or we have a bug.
    if (!(error instanceof AgentGone)) throw error;
    // Another way of restoring may still work. A new session is the last one.
    if (how.kind === 'resume') return refused('refused', wordsOf(error));
    throw notStarted(program, session.connection, error, 'did not open a session');
  }
}

/** What the version that was seen last has to be started with so that no tool can run; null: it needs nothing, or has no profile. */
async function startProfileOf(program: AgentProgram, sandbox: OpenSandbox): Promise<StartProfile | null> {
  const profile = program.memory.learnt && (await profileOf(program.memory.learnt, program, sandbox));
  return profile?.kind === 'start' ? profile : null;
}

async function opening(
  session: AcpSession,
  { sandbox, noTools }: OpenRequest,
  how: Exclude<OpenHow, { kind: 'rehydrate' }>,
  program: AgentProgram,
  startProfile: StartProfile | null,
): Promise<AcpOpened> {
  const { options } = program;
  const can = await initialize(session.connection);
  program.memory.saw(can);
  session.identified(can, quirksOf(can.name, program.knownAs));
  if (options.auth !== null) await session.connection.request('authenticate', { methodId: options.auth });
  const profile = noTools ? await profileOf(can, program, sandbox) : null;
  // The program was started for the version that was seen last; this one may be another.
  const applies = profile !== null && (profile.kind !== 'start' || profile === startProfile);
  if (noTools && !applies) return refused('refused', `${can.name} ${can.version} has no proved profile without tools`);
  const lacks = missingFor(options, can);
  if (lacks !== null) return lacks;
  if (noTools) session.tools = 'forbidden';
  const meta = profile?.kind === 'meta' ? profile.meta : session.quirks.meta;
  const params = {
    cwd: sandbox.work,
    // The tools of MCP servers are tools as well.
    mcpServers: noTools ? [] : options.mcpServers,
    ...(options.directories.length > 0 ? { additionalDirectories: options.directories } : {}),
    ...(meta === undefined ? {} : { _meta: meta }),
  };
  const answered =
    how.kind === 'new' ? await makeSession(session, params) : await reopen(session, params, how, can, program);
  if ('ok' in answered) return answered;
  if (profile?.kind === 'start') {
    await session.connection.request('session/set_title', { sessionId: session.id, title: profile.title });
  }
  await applySettings(session, answered.response, program, profile);
  // A turn may have changed settings for itself before its process died. A session whose settings cannot be set back is not used.
  if (!noTools) {
    await session.choices.giveBack();
    session.updates.keep(session.choices.announcement);
  }
  const { response: _, ...shown } = answered;
  return { ok: true, session, ...shown };
}

/** What the settings ask for and the agent does not support; null: nothing. */
function missingFor({ directories, mcpServers }: AcpOptions, can: Capabilities): Refusal | null {
  if (directories.length > 0 && !can.directories) {
    return refused('refused', 'this agent does not support additional directories', hintOn('directories'));
  }
  const types = mcpServers.flatMap((server) => ('type' in server ? server.type : []));
  const other = types.find((type) => !can.servers.includes(type));
  if (other === undefined) return null;
  return refused('refused', `this agent does not support MCP servers of the type "${other}"`, hintOn('mcpServers'));
}

/** `name`: of a setting that the agent does not take as it is. */
function hintOn(name: 'mode' | 'config' | 'model' | 'directories' | 'mcpServers'): string {
  const place = name === 'model' ? 'the settings of the agent' : '"options" of the agent';
  return `Change or remove "${name}" in ${place}.`;
}

async function makeSession(session: AcpSession, params: object): Promise<Refusal | Answered> {
  const response = asObject(await session.connection.request('session/new', params));
  if (typeof response.sessionId !== 'string' || response.sessionId === '') {
    return refused('refused', 'the agent opened a session without an id');
  }
  session.updates.sessionId = response.sessionId;
  session.updates.banner = session.quirks.banner?.(response) ?? null;
  return { response, proof: 'counted' };
}

async function reopen(
  session: AcpSession,
  params: object,
  how: Extract<OpenHow, { kind: 'resume' }>,
  can: Capabilities,
  program: AgentProgram,
): Promise<Refusal | Answered> {
  session.updates.sessionId = how.id;
  const { learnt } = program.memory;
  const trusted = learnt === null || whyNotReopened(learnt) === null;
  if (!trusted || !(can.load || can.resume)) {
    return refused('refused', 'this agent cannot open a session again');
  }
  const why = (await session.quirks.whyNotOpened?.(how.id, can, session.surroundings)) ?? null;
  if (why !== null) return refused('refused', why);
  return unlessSilent(session, program.options, async () => {
    if (can.load) return loadSession(session, params, how, program);
    const response = asObject(await session.connection.request('session/resume', { ...params, sessionId: how.id }));
    return isAnother(response, how.id) ? OPENED_ANOTHER : { response, proof: 'none' };
  });
}

/** Ends an agent that sends nothing while it opens a session: something in the session may block it. */
async function unlessSilent<T>(
  { connection }: AcpSession,
  { silentMs }: AcpOptions,
  work: () => Promise<T>,
): Promise<T> {
  const begun = performance.now();
  let isOpening = true;
  const look = () => {
    if (!isOpening || Math.min(connection.silentMs, performance.now() - begun) < silentMs) return;
    connection.stop(`it sent nothing for ${silentMs} ms while it opened its session ("silentMs" in its options)`);
  };
  // Not in the timer itself: after our process was suspended, timers run before what came meanwhile is read.
  const timer = setInterval(() => setImmediate(look), Math.min(SILENCE_LOOK_MS, silentMs));
  try {
    return await work();
  } finally {
    isOpening = false;
    clearInterval(timer);
  }
}

const SILENCE_LOOK_MS = 500;

/**
 * Sets the model, the config options and the mode that the settings name. Agents forget some of them when they load a session, so
 * they are set every time. Throws what the agent answers: a setting is used or refused (R7).
 */
async function applySettings(
  session: AcpSession,
  response: Readonly<Record<string, unknown>>,
  { model, options }: AgentProgram,
  profile: NoToolsProfile | null,
): Promise<void> {
  const { connection, id: sessionId, choices } = session;
  const { config, mode } = options;
  choices.read(response);
  if (model !== null) await orNamed('model', choices.setDefaults({ model }));
  await orNamed('config', choices.setDefaults({ config }));
  const setMode = (modeId: string) => connection.request('session/set_mode', { sessionId, modeId });
  if (profile?.kind !== 'mode') return mode === null ? undefined : orNamed('mode', choices.setDefaults({ mode }));
  const { currentModeId } = asObject(response.modes);
  const usual = mode ?? (typeof currentModeId === 'string' ? currentModeId : null);
  await setMode(profile.mode);
  session.tools = {
    mode: profile.mode,
    async leave() {
      if (usual === null) throw new Unsuitable('the agent did not say which mode it was in');
      await setMode(usual);
    },
    // MCP servers are named when a session is opened, and this one was opened without them.
    leavesAllSet: options.mcpServers.length === 0,
  };
}

/** Names the setting that the agent does not take. */
async function orNamed(name: 'mode' | 'config' | 'model', set: Promise<void>): Promise<void> {
  await set.catch((error) => {
    throw error instanceof Unsuitable ? new Unsuitable(error.message, hintOn(name)) : error;
  });
}
