import { addAbortListener } from 'node:events';
import { dirname, extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ThroughlineError } from '../../core/errors.ts';
import type { AgentTraits } from '../../core/restore/traits.ts';
import { NOTHING_TO_CHOOSE } from '../../core/turn/choices.ts';
import type { Agent, Opened, OpenRequest } from '../../ports/agent.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import { OPENING_CANCELLED, refused } from '../shared/flight.ts';
import { parseScriptedOptions, type ScriptedOptions } from './options.ts';
import { ScriptedSession } from './session.ts';
import { historyOf, isSessionId, readPosition, storageDir, storageFile, tailOf } from './storage.ts';

/** Raised when the behaviour of the program changes. */
const VERSION = '1';

/** Plain JavaScript; in the published package as CommonJS, which Node starts faster. */
const PROGRAM = fileURLToPath(
  new URL(`scripted-agent${extname(import.meta.url).replace('.ts', '.js')}`, import.meta.url),
);

/**
 * With the hash seed of its snapshot, Node starts 4 ms sooner than with a random one. A random seed protects against keys that were chosen
 * to collide. Nobody sends such keys to this agent.
 */
const COMMAND = [process.execPath, '--no-rehash-snapshot', PROGRAM];

interface ScriptedSettings {
  readonly name: string;
  /** A part of `ScriptedOptions`, as the settings have it; checked here. */
  readonly options?: Partial<ScriptedOptions> | Readonly<Record<string, unknown>> | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** An agent that answers by rules, with the faults that its options choose. Throws `invalid` for unknown options. */
export function scriptedAgent({ name, options: given, env = {} }: ScriptedSettings): Agent {
  const options = parseScriptedOptions(name, given);
  const readable = options.memory === 'disk' && options.position;
  const fileOf = async (id: string, sandbox: OpenSandbox) =>
    readable ? await storageFile(sandbox, options, id) : null;

  return {
    name,
    traits: async (sandbox) => traitsOf(sandbox, options),
    program: async () => ({ command: COMMAND, env }),
    lacks: async (choices) => (Object.keys(choices).length === 0 ? null : NOTHING_TO_CHOOSE),
    open: (request) => open(request, options, env),
    storage: async (sandbox) => `scripted:${storageDir(sandbox, options)}`,
    async position(sessionId, sandbox) {
      const file = await fileOf(sessionId, sandbox);
      return file === null ? null : readPosition(file);
    },
    async history(sessionId, sandbox) {
      const file = await fileOf(sessionId, sandbox);
      return file === null ? null : historyOf(file);
    },
    async tail(sessionId, sent, sandbox) {
      const file = await fileOf(sessionId, sandbox);
      return file === null ? null : tailOf(file, sent);
    },
  };
}

/** The `host`s of sandboxes that have Node. Every turn asks for the traits, so Node is looked for only until it was found. */
const hostsWithNode = new Set<string>();

async function traitsOf(sandbox: OpenSandbox, options: ScriptedOptions): Promise<AgentTraits> {
  if (!hostsWithNode.has(sandbox.host)) {
    if ((await sandbox.find(process.execPath)) === null) {
      throw new ThroughlineError(
        'agent_unavailable',
        `The scripted agent needs the Node that runs Throughline, ${process.execPath}, and the sandbox does not have it.`,
        { hint: `In a container, bind it and ${dirname(PROGRAM)} ("sandbox.binds").` },
      );
    }
    hostsWithNode.add(sandbox.host);
  }
  const onDisk = options.memory === 'disk';
  return {
    version: VERSION,
    id: options.ids === 'assigned' ? 'assigned' : 'issued',
    resume: onDisk && options.resume !== 'none',
    load: false,
    list: false,
    rehydrate: false,
    noTools: options.noTools,
    position: onDisk && options.position,
    rewind: false,
    images: true,
    window: options.window,
    windowFrom: 'setting',
  };
}

async function open(
  request: OpenRequest,
  options: ScriptedOptions,
  env: Readonly<Record<string, string>>,
): Promise<Opened> {
  const { how, sandbox, noTools, signal } = request;
  if (how.kind === 'rehydrate') return refused('refused', 'this agent cannot read a transcript');
  if (noTools && !options.noTools) return refused('refused', 'this agent has no profile without tools');
  if (signal.aborted) return OPENING_CANCELLED;
  const dir = storageDir(sandbox, options);
  if (how.id !== null && !isSessionId(how.id)) {
    return refused(
      how.kind === 'resume' ? 'not_found' : 'refused',
      `${JSON.stringify(how.id)} is not a valid session id`,
    );
  }
  const child = await sandbox.spawn(COMMAND, { env });
  const session = new ScriptedSession(child, sandbox, {
    type: 'open',
    how: how.kind,
    id: how.id,
    dir,
    noTools,
    system: '',
    options,
  });
  using _ = addAbortListener(signal, () => child.kill('SIGKILL'));
  try {
    const answer = await session.start();
    if (answer.type === 'opened' && !signal.aborted) {
      const known = how.kind === 'resume' && (await session.position()) !== null;
      return { ok: true, session, proof: how.kind === 'new' ? 'counted' : known ? 'proved' : 'none' };
    }
    await session.close();
    return answer.type === 'refused' ? refused(answer.reason, answer.message) : OPENING_CANCELLED;
  } catch (error) {
    if (signal.aborted) return OPENING_CANCELLED;
    throw error;
  }
}
