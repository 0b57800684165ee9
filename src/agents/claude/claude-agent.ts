import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import type { AgentTraits } from '../../core/traits.ts';
import type { Agent, Opened, OpenHow, OpenRequest, Rehydration } from '../../ports/agent.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import { ClaudeRefusal, type Connect, type ConnectRequest } from './connection.ts';
import { environmentIn, environmentOutside } from './environment.ts';
import { loginOf } from './login.ts';
import { parseMemo } from './memo.ts';
import type { ClaudeOptions } from './options.ts';
import { Questions } from './permissions.ts';
import { canRewind, goBack } from './rewind.ts';
import type { Seal } from './seal.ts';
import { ClaudeSession, type ClaudeSessionParts } from './session.ts';
import { SessionFile } from './session-file.ts';
import { storageName } from './storage-name.ts';
import { isWhole } from './transcript/chain.ts';
import { listTranscripts } from './transcript/list.ts';
import { projectDir, transcriptFile } from './transcript/locate.ts';
import { entriesFrom, readPosition } from './transcript/position.ts';
import { synthesise } from './transcript/synthesise.ts';
import { updatesOf } from './transcript/to-updates.ts';
import { putTranscript } from './transcript/write.ts';

export interface ClaudeAgentParts {
  readonly name: string;
  readonly connect: Connect;
  /** What this Claude is. Called once. Throws `agent_unavailable`. */
  probe(): Promise<ClaudeFacts>;
  /** The program that it runs, with its first arguments. Throws `agent_unavailable`. */
  program(): Promise<readonly string[]>;
  /** From the settings; added to what Claude gets of our environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly options: ClaudeOptions;
  /** Null: the one that Claude chooses. */
  readonly model: string | null;
}

export interface ClaudeFacts {
  readonly version: string;
  /** Where it was found, for people. */
  readonly where: string;
  /** Takes the id of a new session from us; older versions issue their own. */
  readonly assignsIds: boolean;
  /** Has a profile in which no tool can run, proved on this very version. */
  readonly noTools: boolean;
}

/** A model of which nothing else is known. */
const WINDOW = 200_000;
const LONG_WINDOW = 1_000_000;

/**
 * Claude, however it is run. Its storage is its transcript file: a position is where the chain of its entries ends.
 *
 * A process that was left over by a killed worker is not looked for here. One that works on a turn is on record before the
 * first byte leaves (`turn.sent`), and the engine ends it by that; one that was never prompted ends by itself, because its
 * input ended with us. Claude's own list of processes (`sessions/<pid>.json`) would only add those that a person has started by
 * hand, and those are not ours to end: what they write is noticed as a position that is not ours (R10).
 */
export function claudeAgent(parts: ClaudeAgentParts): Agent {
  let facts: Promise<ClaudeFacts> | null = null;
  const known = () => {
    facts ??= parts.probe();
    facts.catch(() => {
      facts = null; // it may have been installed by the next time
    });
    return facts;
  };
  return {
    name: parts.name,
    traits: async () => traitsOf(await known(), parts),
    where: async () => (await known()).where,
    login: async (signal) => {
      const env = environmentOutside(process.env, parts.env);
      return loginOf({ command: await parts.program(), env, signal });
    },
    async list(cwd) {
      // Those of a home of the sandbox's own are nobody else's.
      if (parts.options.home === 'sandbox') return [];
      const env = environmentOutside(process.env, parts.env);
      return listTranscripts(projectDir({ HOME: process.env.HOME, ...env }, cwd));
    },
    open: async (request) => open(request, parts, await known()),
    storage: async (sandbox) => storageName(environmentOf(sandbox, parts).whole, sandbox.work),
    async position(sessionId, sandbox) {
      const file = storageOf(sandbox, parts).fileOf(sessionId);
      return file === null ? null : ((await readPosition(file))?.position ?? null);
    },
    async tail(sessionId, sent, sandbox) {
      const file = storageOf(sandbox, parts).fileOf(sessionId);
      const found = file === null ? null : await entriesFrom(file, sent);
      return found && { updates: updatesOf(found.entries), position: found.position };
    },
  };
}

function traitsOf({ version, assignsIds, noTools }: ClaudeFacts, { model, options }: ClaudeAgentParts): AgentTraits {
  return {
    version,
    id: assignsIds ? 'assigned' : 'issued',
    resume: true,
    load: false,
    list: true,
    rehydrate: true,
    noTools,
    position: true,
    rewind: canRewind(version),
    window: options.window ?? (model?.includes('[1m]') ? LONG_WINDOW : WINDOW),
  };
}

interface Storage {
  readonly env: Record<string, string>;
  /** Where this sandbox's sessions are written. */
  readonly folder: string;
  /** Null: no session can have this id. */
  fileOf(id: string): string | null;
}

/** What Claude gets from us in this sandbox, and the whole by which it finds its files. */
function environmentOf(sandbox: OpenSandbox, { env: settings, options }: ClaudeAgentParts) {
  const env = environmentIn(sandbox, process.env, settings, options.home);
  return { env, whole: { HOME: process.env.HOME, ...env } };
}

function storageOf(sandbox: OpenSandbox, parts: ClaudeAgentParts): Storage {
  const { env, whole } = environmentOf(sandbox, parts);
  return { env, folder: projectDir(whole, sandbox.work), fileOf: (id) => transcriptFile(whole, sandbox.work, id) };
}

type Refusal = Extract<Opened, { ok: false }>;

async function open(request: OpenRequest, parts: ClaudeAgentParts, facts: ClaudeFacts): Promise<Opened> {
  const { how, sandbox, noTools, signal } = request;
  if (noTools && !facts.noTools) return refused('refused', 'this Claude has no profile without tools that was proved');
  if (signal.aborted) return refused('refused', 'opening was cancelled');
  const storage = storageOf(sandbox, parts);
  if (how.kind === 'new') {
    const id = how.id ?? randomUUID();
    const at = { id: facts.assignsIds ? id : null, file: null, empty: true, cost: null };
    return start({ kind: 'new', id }, at, request, parts, facts, storage);
  }
  const path = storage.fileOf(how.id);
  if (path === null) return refused('not_found', `${JSON.stringify(how.id)} cannot be a session's id`);
  const put = how.kind === 'rehydrate' ? await rehydrate(path, how.id, how.from, sandbox, facts.version) : null;
  if (put !== null && 'ok' in put) return put;
  const file = new SessionFile(path);
  const { cost, seal } = parseMemo(how.kind === 'resume' ? how.memo : 'memo' in how.from ? how.from.memo : null);
  const at = { id: how.id, file, empty: false, cost };
  let kept = false;
  try {
    const unfit = (await damageOf(file)) ?? (await changeOf(file, seal));
    const opened = unfit ?? (await resume(how, at, request, parts, facts, storage));
    kept = opened.ok;
    return opened;
  } finally {
    // What nobody goes on with is not left behind.
    if (!kept && put?.written) await rm(path, { force: true });
  }
}

async function resume(
  how: Exclude<OpenHow, { kind: 'new' }>,
  at: StartsAt & { readonly file: SessionFile },
  request: OpenRequest,
  parts: ClaudeAgentParts,
  facts: ClaudeFacts,
  storage: Storage,
): Promise<Opened> {
  const { id } = how;
  const rewind = how.kind === 'resume' ? (how.rewind ?? null) : null;
  if (rewind === null) return start({ kind: 'resume', id }, at, request, parts, facts, storage);
  const rewound = await goBack(at.file, id, rewind);
  if (typeof rewound === 'string') return refused('refused', rewound);
  const { at: entry, drops } = rewound;
  const back = { kind: 'resume', id, rewind: { at: entry, drops } } as const;
  return start(back, { ...at, rewound }, request, parts, facts, storage);
}

/** Why the file cannot be resumed: Claude would do it all the same, and tell the model less. Null: all of it is there. */
async function damageOf(file: SessionFile): Promise<Refusal | null> {
  await file.read();
  const { chain } = file;
  if (chain === null) return refused('not_found', 'Claude has no such session here');
  if (isWhole(chain)) return null;
  const kinds = [...new Set(chain.defects.map(({ kind }) => kind))].join(', ');
  return refused('refused', `its transcript is damaged (${kinds || 'its chain has no beginning'})`);
}

/** Whether the file tells another story than the one we know: positions are the same when a line is edited. Null: it does not. */
async function changeOf(file: SessionFile, seal: Seal | null): Promise<Refusal | null> {
  if (seal === null || (await file.holds(seal))) return null;
  return refused('diverged', 'its transcript is not what it was, though it ends where it did');
}

async function rehydrate(
  file: string,
  id: string,
  from: Rehydration,
  sandbox: OpenSandbox,
  version: string,
): Promise<Refusal | { readonly written: boolean }> {
  const content =
    'transcript' in from
      ? [from.transcript]
      : synthesise(from.records, { id, cwd: sandbox.work, version, seed: id, before: Date.now() });
  const { result, detail } = await putTranscript(file, content);
  if (result === 'written' || result === 'same') return { written: result === 'written' };
  return refused('refused', `its transcript cannot be put back: ${detail}`);
}

type StartsAt = Pick<ClaudeSessionParts, 'id' | 'file' | 'empty' | 'cost' | 'rewound'>;

async function start(
  how: ConnectRequest['how'],
  at: StartsAt,
  { sandbox, noTools, signal }: OpenRequest,
  { connect, model }: ClaudeAgentParts,
  { version }: ClaudeFacts,
  { env, folder, fileOf }: Storage,
): Promise<Opened> {
  const questions = new Questions();
  const onPermission = questions.ask.bind(questions);
  try {
    const connection = await connect({ sandbox, env, how, noTools, model, signal, onPermission });
    if (signal.aborted) {
      await connection.kill();
      return refused('refused', 'opening was cancelled');
    }
    const session = new ClaudeSession({ ...at, connection, questions, fileOf, folder, noTools, version });
    return { ok: true, session, proof: how.kind === 'new' ? 'counted' : 'proved' };
  } catch (error) {
    if (signal.aborted) return refused('refused', 'opening was cancelled');
    if (error instanceof ClaudeRefusal) return refused(error.reason, error.message);
    throw error;
  }
}

function refused(reason: Refusal['reason'], message: string): Refusal {
  return { ok: false, reason, message };
}
