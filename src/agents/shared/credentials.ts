import { createHash } from 'node:crypto';
import { ThroughlineError } from '../../core/errors.ts';
import { type Credentials, hides, placeOf, unfinishedIn } from '../../core/sandbox/credentials.ts';
import { chunkText, RETRACTED, type Update } from '../../core/turn/update.ts';
import type { Agent, AgentEvent, AgentSession } from '../../ports/agent.ts';
import type { Folder, OpenSandbox } from '../../ports/sandbox.ts';
import { parseObject } from './json.ts';

/*
 * An agent that is handed what it logs in with. Only programs that act for an owner get it: those that open a session or read one. A look
 * at the agent is remembered for all owners, so it has only what all owners share. Commands that an agent chooses (`partOf`) get nothing.
 */

export interface AgentCredentials {
  /** Whether owners have different ones. */
  readonly perOwner: boolean;
  /** Those of an owner; null: those that all owners share. Throws `agent_unavailable` when an owner has none. */
  of(owner: string | null): Promise<Credentials>;
}

export function withCredentials(agent: Agent, credentials: AgentCredentials): Agent {
  const shared = async (sandbox: OpenSandbox) => handed(sandbox, await credentials.of(null));
  // Every turn asks for traits, and few looks start a program. Without credentials it still shows what it can do; `open` says what
  // is missing.
  const look = (sandbox: OpenSandbox): OpenSandbox => ({
    ...sandbox,
    spawn: async (command, options) => (await shared(sandbox).catch(() => sandbox)).spawn(command, options),
  });
  /** Everybody may see what a look says. */
  const looked = async <T>(sandbox: OpenSandbox, see: (given: OpenSandbox) => Promise<T>): Promise<T> => {
    const hide = hides(await credentials.of(null).catch(() => ({})));
    return discreetly(hide, async () => hide(await see(look(sandbox))));
  };
  const act = async (sandbox: OpenSandbox) => {
    const taken = await credentials.of(sandbox.owner ?? null);
    return { taken, hide: hides(taken), sandbox: await handed(sandbox, taken) };
  };
  return {
    name: agent.name,
    traits: (sandbox, signal) => looked(sandbox, (given) => agent.traits(given, signal)),
    position: (id, sandbox) => agent.position(id, sandbox),
    async tail(id, sent, sandbox) {
      // Without the values nobody can say what has to be hidden.
      const hide = await credentials.of(sandbox.owner ?? null).then(hides, () => null);
      return hide === null ? null : hide(await agent.tail(id, sent, sandbox));
    },
    async open(request) {
      const { taken, hide, sandbox } = await act(request.sandbox);
      return discreetly(hide, async () => {
        const opened = await agent.open({ ...request, sandbox });
        return opened.ok ? { ...opened, session: quietSession(opened.session, taken) } : hide(opened);
      });
    },
    ...(agent.history && {
      history: async (id, given, signal) => {
        const { hide, sandbox } = await act(given);
        return discreetly(hide, async () => hide((await agent.history?.(id, sandbox, signal)) ?? null));
      },
    }),
    ...(agent.login && {
      login: async (sandbox, signal) => {
        if (credentials.perOwner) return EACH_OWNER;
        const given = await shared(sandbox);
        return looked(sandbox, async () => (await agent.login?.(given, signal)) ?? null);
      },
    }),
    ...(agent.storage && { storage: async (sandbox) => (await agent.storage?.(look(sandbox))) ?? agent.name }),
    ...(agent.list && {
      list: async (sandbox, signal) => {
        const given = await shared(sandbox);
        return looked(sandbox, async () => (await agent.list?.(given, signal)) ?? null);
      },
    }),
    ...(agent.where && { where: async (sandbox) => (await agent.where?.(look(sandbox))) ?? null }),
    ...(agent.doubt && {
      doubt: (sandbox) => looked(sandbox, async (given) => (await agent.doubt?.(given)) ?? null),
    }),
    ...(agent.howToAllow && { howToAllow: async () => (await agent.howToAllow?.()) ?? null }),
  };
}

const EACH_OWNER = { loggedIn: null, hint: 'each owner has credentials of its own' };

/** The sandbox, whose programs get these: as variables, or as files in its home. */
async function handed(sandbox: OpenSandbox, credentials: Credentials): Promise<OpenSandbox> {
  const places = Object.entries(credentials).map(([name, value]) => ({ name, value, place: placeOf(name) }));
  const env: Record<string, string> = {};
  for (const { value, place } of places) if (place && 'variable' in place) env[place.variable] = value;
  const files = places.flatMap(({ name, value, place }) =>
    place && 'file' in place ? [{ name, value, ...place }] : [],
  );
  if (files.length > 0) await putFiles(sandbox, files);
  return {
    ...sandbox,
    spawn: (command, options) =>
      sandbox.spawn(command, options.partOf ? options : { ...options, env: { ...options.env, ...env } }),
  };
}

interface HomeFile {
  readonly name: string;
  readonly file: string;
  readonly value: string;
}

/** In the state of the sandbox: what we have written into its home. */
const WRITTEN = 'throughline-credentials.json';
const MOST_WRITTEN = 65_536;

/**
 * A file is written when its value is new. An agent may have changed it since, as one that renews its own login does: what it has written
 * stays, until we have another value.
 */
async function putFiles(sandbox: OpenSandbox, files: readonly HomeFile[]): Promise<void> {
  if (!sandbox.ownHome) {
    throw new ThroughlineError(
      'agent_unavailable',
      `${files[0]?.name} of the agent's credentials would be written into the home of a person: agents have no home of their own in these sandboxes.`,
      {
        hint: 'Hand it over as a variable, or set "sandbox.kind" to one with homes of their own. See docs/sandboxes.md.',
      },
    );
  }
  const [home, state] = await Promise.all([sandbox.folder(sandbox.home), sandbox.folder(sandbox.state)]);
  const before = await writtenIn(state);
  const now = Object.fromEntries(files.map(({ name, value }) => [name, digestOf(value)]));
  const changed = files.filter(({ name }) => before[name] !== now[name]);
  const missing = await Promise.all(files.map(async (one) => ((await home.stat(one.file)) === null ? [one] : [])));
  const due = new Set([...changed, ...missing.flat()]);
  if (due.size === 0) return;
  for (const { file, value } of due) await home.replace(file, value, { mode: 0o600 });
  await state.replace(WRITTEN, JSON.stringify({ ...before, ...now }), { mode: 0o600 });
}

/** The agent can change it: then it gets a file again, or keeps the one that it has. */
async function writtenIn(state: Folder): Promise<Readonly<Record<string, unknown>>> {
  const read = await state.read(WRITTEN, { most: MOST_WRITTEN });
  return (read && parseObject(Buffer.from(read.bytes).toString('utf8'))) ?? {};
}

const digestOf = (value: string) => createHash('sha256').update(value).digest('hex');

type Hide = ReturnType<typeof hides>;

/** What is thrown says nothing of them either. */
async function discreetly<T>(hide: Hide, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ThroughlineError)) throw error;
    const { code, message, hint } = error;
    const said = { message: hide(message), hint: hide(hint) };
    if (said.message === message && said.hint === hint) throw error;
    throw new ThroughlineError(code, said.message, said.hint === undefined ? {} : { hint: said.hint });
  }
}

/** The session; what its agent says has none of them in it. */
function quietSession(session: AgentSession, taken: Credentials): AgentSession {
  const hide = hides(taken);
  const unfinished = unfinishedIn(taken);
  return {
    get id() {
      return session.id;
    },
    get process() {
      return session.process;
    },
    get alive() {
      return session.alive;
    },
    get memo() {
      return session.memo ?? null;
    },
    async *prompt(request) {
      for await (const event of inWholes(session.prompt(request), unfinished)) yield hide(event);
    },
    ...(session.transcript && { transcript: async (from) => (await session.transcript?.(from)) ?? null }),
    ...(session.wording && { wording: (content) => session.wording?.(content) ?? content }),
    ...(session.choose && { choose: async (choices) => hide((await session.choose?.(choices)) ?? 'set') }),
    position: () => session.position(),
    allowTools: () => session.allowTools(),
    answer: (permission, option) => session.answer(permission, option),
    close: () => session.close(),
    kill: () => session.kill(),
  };
}

/**
 * The same events; the end of a text that may be the beginning of a value comes with the next piece of that text. What a record does not put
 * between the two, as figures of what was used, comes before it.
 */
async function* inWholes(
  events: AsyncIterable<AgentEvent>,
  unfinished: (text: string) => number,
): AsyncGenerator<AgentEvent> {
  let held: Update | null = null;
  for await (const event of events) {
    const text: string | null = event.type === 'update' ? chunkText(event.update) : null;
    if (held !== null && isBetween(held, event)) {
      yield { type: 'update', update: held };
      held = null;
    }
    if (event.type !== 'update' || text === null) {
      yield event;
      continue;
    }
    const whole: string = held === null ? text : chunkText(held) + text;
    const end = whole.length - unfinished(whole);
    if (held === null && end === whole.length) yield event;
    else if (end > 0) yield { type: 'update', update: withText(event.update, whole.slice(0, end)) };
    held = end === whole.length ? null : withText(event.update, whole.slice(end));
  }
  if (held !== null) yield { type: 'update', update: held };
}

/** Whether the event ends the text that is held, for whoever reads the record. */
function isBetween(held: Update, event: AgentEvent): boolean {
  if (event.type !== 'update') return event.type === 'permission' || event.type === 'ended';
  const { update } = event;
  if (chunkText(update) === null) return update.sessionUpdate === 'tool_call' || update.sessionUpdate === RETRACTED;
  return JSON.stringify(withText(held, '')) !== JSON.stringify(withText(update, ''));
}

function withText(chunk: Update, text: string): Update {
  const content = 'content' in chunk ? (chunk.content as object) : {};
  return { ...chunk, content: { ...content, text } } as Update;
}
