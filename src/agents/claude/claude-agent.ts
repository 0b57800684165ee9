import { randomUUID } from 'node:crypto';
import type { AgentTraits } from '../../core/restore/traits.ts';
import { isObject } from '../../core/turn/content.ts';
import type { Agent, Opened, OpenHow, OpenRequest, Rehydration } from '../../ports/agent.ts';
import type { Clock } from '../../ports/clock.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import { OPENING_CANCELLED, type Refusal, refused } from '../shared/flight.ts';
import { ClaudeRefusal, type Connect, type ConnectRequest, UUID } from './connection.ts';
import { environmentIn } from './environment.ts';
import { loginOf } from './find/login.ts';
import { lacks } from './session/choices.ts';
import { Questions } from './session/questions.ts';
import { canRewind, prepareRewind } from './session/rewind.ts';
import { parseMemo, type Seal } from './session/seal.ts';
import { ClaudeSession, type ClaudeSessionParts } from './session/session.ts';
import { SessionFile } from './session/session-file.ts';
import type { ClaudeOptions } from './settings.ts';
import { isWhole, leafOf } from './transcript/chain.ts';
import type { Transcript } from './transcript/file.ts';
import { historyOf } from './transcript/history.ts';
import { listTranscripts } from './transcript/list.ts';
import { type SessionStorage, storageIn } from './transcript/locate.ts';
import { entriesFrom } from './transcript/position.ts';
import { TranscriptReader } from './transcript/reader.ts';
import { synthesise } from './transcript/synthesise.ts';
import { cameToItsEnd, updatesOf, usageIn } from './transcript/updates.ts';
import { putTranscript } from './transcript/write.ts';
import type { LearntWindows } from './windows.ts';

/*
 * Claude, run through its SDK (sdk/adapter.ts) or its program (cli/adapter.ts): both find a Claude (find/) and connect to it
 * (connection.ts). Everything else is here and the same for both. A session (session/) is one running Claude. Its storage is its
 * transcript file (transcript/): a position is the end of the chain of its entries.
 */

export interface ClaudeAgentParts {
  readonly name: string;
  readonly connect: Connect;
  /** Looks for Claude and remembers it. Throws `agent_unavailable`. */
  find(sandbox: OpenSandbox): Promise<InstalledClaude>;
  /** Variables from the settings, added to those that Claude inherits. */
  readonly env: Readonly<Record<string, string>>;
  /** Our environment, of which Claude gets the variables that it needs. */
  readonly ours: NodeJS.ProcessEnv;
  readonly options: ClaudeOptions;
  /** Null: Claude chooses one. */
  readonly model: string | null;
  readonly windows: Pick<LearntWindows, 'of' | 'learn'>;
  readonly clock: Clock;
}

interface InstalledClaude {
  readonly version: string;
  /** Where it was found, for people. */
  readonly where: string;
  /** The program with its first arguments. */
  readonly command: readonly string[];
}

/** Versions whose profile without tools was proved by counting side effects (test/agents/claude/{cli,sdk}.test.ts). */
const PROVED_WITHOUT_TOOLS: ReadonlySet<string> = new Set(['2.1.325']);
/** Claude's name for the model that it chooses itself. */
const DEFAULT_MODEL = 'default';
/** In tokens, until Claude has reported that of the model. */
const WINDOW = 200_000;
/** Of a model with `[1m]` in its name, which is how Claude itself selects that window. */
const LONG_WINDOW = 1_000_000;

/**
 * Does not look for processes that a killed worker left behind. The engine ends them: one that works on a turn was recorded before
 * its prompt was sent (`turn.sent`), and any other is found by its mark. Claude's own list of processes (`sessions/<pid>.json`) would
 * only add those that a person has started, and we must not end those: what they write shows as a position that is not ours (R10).
 */
export function claudeAgent(parts: ClaudeAgentParts): Agent {
  return {
    name: parts.name,
    howToAllow: async (toolCalls) => howToAllow(toolCalls),
    lacks: async (choices) => lacks(choices),
    traits: async (sandbox, _signal, model) => traitsOf((await parts.find(sandbox)).version, parts, model),
    where: async (sandbox) => (await parts.find(sandbox)).where,
    login: async (sandbox, signal) => {
      const { command } = await parts.find(sandbox);
      const { home } = parts.options;
      return loginOf({ sandbox, command, env: environmentIn(sandbox, parts.ours, parts.env, home), home, signal });
    },
    async list(sandbox) {
      // With a config directory in the sandbox, each conversation sees only its own session.
      return parts.options.home === 'sandbox' ? [] : listTranscripts((await inside(sandbox, parts)).storage);
    },
    async open(request) {
      const { version } = await parts.find(request.sandbox);
      return open({ request, parts, version, ...(await inside(request.sandbox, parts)) });
    },
    storage: async (sandbox) => (await inside(sandbox, parts)).storage.name,
    async position(sessionId, sandbox) {
      const file = await fileIn(sandbox, sessionId, parts);
      return file === null ? null : (await new TranscriptReader(file).skip()).position;
    },
    async history(sessionId, sandbox) {
      const file = await fileIn(sandbox, sessionId, parts);
      return file === null ? null : historyOf(file);
    },
    async tail(sessionId, sent, sandbox) {
      const file = await fileIn(sandbox, sessionId, parts);
      const found = file === null ? null : await entriesFrom(file, sent);
      if (found === null) return null;
      const { entries, position, landed } = found;
      const ended = landed && cameToItsEnd(entries);
      return { updates: updatesOf(entries), position, usage: usageIn(entries), ended };
    },
  };
}

/** "acceptEdits" is for edits alone. The title of a tool call is the name of the tool. */
function howToAllow(toolCalls: readonly unknown[]): string {
  const calls = toolCalls.filter(isObject);
  if (calls.every(({ kind }) => kind === 'edit')) return '"options": {"permissionMode": "acceptEdits"}';
  const tools = [...new Set(calls.flatMap(({ title }) => (typeof title === 'string' ? [title] : [])))];
  return `"options": {"allowedTools": ${JSON.stringify(tools)}} (docs/claude.md says how to allow less, such as "Bash(git log:*)")`;
}

function traitsOf(version: string, parts: ClaudeAgentParts, model: string | undefined): AgentTraits {
  return {
    version,
    id: 'assigned',
    resume: true,
    load: false,
    list: true,
    rehydrate: true,
    noTools: PROVED_WITHOUT_TOOLS.has(version),
    position: true,
    rewind: canRewind(version),
    images: true,
    ...windowOf(parts, model ?? parts.model),
  };
}

function windowOf({ options, windows }: ClaudeAgentParts, model: string | null) {
  if (options.window !== undefined) return { window: options.window, windowFrom: 'setting' } as const;
  const reported = windows.of(model);
  if (reported !== null) return { window: reported, windowFrom: 'reported' } as const;
  return { window: model?.includes('[1m]') ? LONG_WINDOW : WINDOW, windowFrom: 'assumed' } as const;
}

/** The variables that Claude gets in a sandbox, and where it keeps its sessions there. */
interface Inside {
  readonly env: Record<string, string>;
  readonly storage: SessionStorage;
}

async function inside(sandbox: OpenSandbox, { env: settings, ours, options }: ClaudeAgentParts): Promise<Inside> {
  const env = environmentIn(sandbox, ours, settings, options.home);
  return { env, storage: await storageIn(sandbox, env) };
}

async function fileIn(sandbox: OpenSandbox, sessionId: string, parts: ClaudeAgentParts): Promise<Transcript | null> {
  return (await inside(sandbox, parts)).storage.fileOf(sessionId);
}

/** The state of the session with which Claude is started. */
type StartsAt = Pick<ClaudeSessionParts, 'id' | 'file' | 'empty' | 'costUsd' | 'rewound'> & {
  /** See `Memo`. */
  readonly chosenModel: boolean;
};

/** `written` false: the file had this content before. */
interface Written {
  readonly written: boolean;
  readonly content: string | Uint8Array;
}

/** One request to open a session. */
interface Opening extends Inside {
  readonly request: OpenRequest;
  readonly parts: ClaudeAgentParts;
  readonly version: string;
}

/** Checks its transcript, or writes it, and then starts Claude. */
async function open(opening: Opening): Promise<Opened> {
  const { request, version } = opening;
  const { how, noTools, signal } = request;
  if (noTools && !PROVED_WITHOUT_TOOLS.has(version)) {
    return refused('refused', `no profile without tools is proved for Claude ${version}`);
  }
  if (signal.aborted) return OPENING_CANCELLED;
  if (how.kind !== 'resume' && how.id !== null && !UUID.test(how.id)) {
    return refused('refused', `${JSON.stringify(how.id)} is not a UUID; Claude takes no other session ids`);
  }
  if (how.kind !== 'new') return openExisting(opening, how);
  const id = how.id ?? randomUUID();
  return start(opening, { kind: 'new', id }, { id, file: null, empty: true, costUsd: null, chosenModel: false });
}

async function openExisting(opening: Opening, how: Exclude<OpenHow, { kind: 'new' }>): Promise<Opened> {
  const transcript = opening.storage.fileOf(how.id);
  if (transcript === null) return refused('not_found', `${JSON.stringify(how.id)} is not a valid session id`);
  const put = how.kind === 'rehydrate' ? await rehydrate(opening, transcript, how.id, how.from) : null;
  if (put !== null && 'ok' in put) return put;
  const memo = parseMemo(how.kind === 'resume' ? how.memo : 'memo' in how.from ? how.from.memo : null);
  const { costUsd, seal, chosenModel } = memo;
  const file = new SessionFile(transcript);
  let opened = false;
  try {
    const refusal = (await damageOf(file)) ?? (await changeOf(file, seal));
    const result = refusal ?? (await resume(opening, how, { id: how.id, file, empty: false, costUsd, chosenModel }));
    opened = result.ok;
    if (!result.ok) return result;
    const wrote = put === null ? {} : { wrote: put.content };
    return { ...result, ...condensedIn(file, how, memo.compaction), ...wrote };
  } finally {
    // Without a session, the transcript that we wrote is removed again.
    if (!opened && put?.written) await transcript.remove();
  }
}

async function resume(
  opening: Opening,
  how: Exclude<OpenHow, { kind: 'new' }>,
  at: StartsAt & { readonly file: SessionFile },
): Promise<Opened> {
  const { id } = how;
  const rewind = how.kind === 'resume' ? (how.rewind ?? null) : null;
  if (rewind === null) return start(opening, { kind: 'resume', id }, at);
  const rewound = await prepareRewind(at.file, id, rewind);
  if (typeof rewound === 'string') return refused('refused', rewound);
  const { at: entry, drops } = rewound;
  return start(opening, { kind: 'resume', id, rewind: { at: entry, drops } }, { ...at, rewound });
}

async function rehydrate(
  { request, parts, version }: Opening,
  file: Transcript,
  id: string,
  from: Rehydration,
): Promise<Refusal | Written> {
  const session = { id, cwd: request.sandbox.work, version, before: parts.clock.now() };
  const content = 'transcript' in from ? from.transcript : [...synthesise(from.records, session)].join('');
  const { result, detail } = await putTranscript(file, content);
  if (result === 'written' || result === 'same') return { written: result === 'written', content };
  return refused('refused', `its transcript cannot be written: ${detail}`);
}

async function start(opening: Opening, how: ConnectRequest['how'], at: StartsAt): Promise<Opened> {
  const { request, parts, version, env, storage } = opening;
  const { sandbox, noTools, signal, choices = {} } = request;
  const { connect, model: usualModel } = parts;
  const model = choices.model ?? usualModel;
  const questions = new Questions();
  const onPermission = questions.ask.bind(questions);
  try {
    // If we name no model, Claude continues with the one that its transcript names.
    const named = model ?? (at.chosenModel ? DEFAULT_MODEL : null);
    const connection = await connect({ sandbox, env, how, noTools, model: named, signal, onPermission });
    if (signal.aborted) {
      await connection.kill();
      return OPENING_CANCELLED;
    }
    const { permissionMode: mode = null, effort = null } = parts.options;
    const startedWith = { model, usualModel, mode, effort };
    const session = new ClaudeSession({
      ...at,
      connection,
      questions,
      storage,
      noTools,
      version,
      startedWith,
      onWindow: (tokens) => parts.windows.learn(model, tokens),
    });
    return { ok: true, session, proof: how.kind === 'new' ? 'counted' : 'proved' };
  } catch (error) {
    if (signal.aborted) return OPENING_CANCELLED;
    if (error instanceof ClaudeRefusal) return refused(error.reason, error.message);
    throw error;
  }
}

/** Claude would resume a damaged file without an error, and send the model only a part of it. Null: the file is whole. */
async function damageOf(file: SessionFile): Promise<Refusal | null> {
  await file.read();
  const { chain } = file;
  if (chain === null) {
    const error = await file.transcript.readError();
    if (error !== null) return refused('refused', `its transcript cannot be read: ${error}`);
    return refused('not_found', 'Claude has no such session here');
  }
  if (isWhole(chain)) return null;
  const kinds = [...new Set(chain.defects.map(({ kind }) => kind))].join(', ');
  return refused('refused', `its transcript is damaged (${kinds || 'its chain has no beginning'})`);
}

/** Whether the transcript begins with a summary of Claude's own. Left out: the same one as after the last turn. */
function condensedIn(file: SessionFile, how: OpenHow, known: string | null): { readonly condensed?: boolean } {
  const rewind = how.kind === 'resume' ? how.rewind : null;
  const compaction = rewind ? file.compactionAt(leafOf(rewind.position)) : file.compactionAt();
  if (compaction === null) return { condensed: false };
  return compaction === known ? {} : { condensed: true };
}

/** Finds edited lines, which do not change the position. Null: the file is unchanged. */
async function changeOf(file: SessionFile, seal: Seal | null): Promise<Refusal | null> {
  if (seal === null || (await file.sealer.holds(seal))) return null;
  return refused('diverged', 'its transcript was changed, though its position is the same');
}
