import { createHash } from 'node:crypto';
import { ThroughlineError } from '../../core/errors.ts';
import { type Credentials, hides, placeOf, unfinishedIn } from '../../core/sandbox/credentials.ts';
import { chunkText, RETRACTED, type Update } from '../../core/turn/update.ts';
import type { Agent, AgentEvent, AgentSession } from '../../ports/agent.ts';
import type { Folder, OpenSandbox } from '../../ports/sandbox.ts';
import { parseObject } from './json.ts';

/*
 * Gives the programs of an agent what they log in with. A program that opens or reads a session acts for an owner, and gets the credentials
 * of that owner. A look at the agent (traits, login, its sessions) is remembered for all owners, so it gets only what all owners share.
 * Commands that an agent chooses (`partOf`) get nothing. The values are removed from everything that the agent says.
 */

export interface AgentCredentials {
  /** Whether owners have different ones. */
  readonly perOwner: boolean;
  /** Those of an owner; null: those that all owners share. Throws `agent_unavailable` when an owner has none. */
  of(owner: string | null): Promise<Credentials>;
}

/** `program` is left out: a program that is started early would not have the credentials. */
export function withCredentials(agent: Agent, credentials: AgentCredentials): Agent {
  const withShared = async (sandbox: OpenSandbox) => withEnvironment(sandbox, await credentials.of(null));
  // Every turn asks for traits, and few looks start a program. Without credentials the agent still shows what it can do; `open` says
  // what is missing.
  const forLook = (sandbox: OpenSandbox): OpenSandbox => ({
    ...sandbox,
    spawn: async (command, options) => (await withShared(sandbox).catch(() => sandbox)).spawn(command, options),
  });
  /** Every owner may see the result of a look. */
  const looking = async <T>(look: () => Promise<T>): Promise<T> => {
    const hide = hides(await credentials.of(null).catch(() => ({})));
    return hidingErrors(hide, async () => hide(await look()));
  };
  const forOwner = async (sandbox: OpenSandbox) => {
    const taken = await credentials.of(sandbox.owner ?? null);
    return { taken, hide: hides(taken), sandbox: await withEnvironment(sandbox, taken) };
  };
  return {
    name: agent.name,
    traits: (sandbox, ...more) => looking(() => agent.traits(forLook(sandbox), ...more)),
    position: (id, sandbox) => agent.position(id, sandbox),
    async tail(id, sent, sandbox) {
      // Without the values we do not know what to hide.
      const hide = await credentials.of(sandbox.owner ?? null).then(hides, () => null);
      return hide === null ? null : hide(await agent.tail(id, sent, sandbox));
    },
    async open(request) {
      const { taken, hide, sandbox } = await forOwner(request.sandbox);
      return hidingErrors(hide, async () => {
        const opened = await agent.open({ ...request, sandbox });
        return opened.ok ? { ...opened, session: hidingSession(opened.session, taken) } : hide(opened);
      });
    },
    ...(agent.history && {
      history: async (id, given, signal) => {
        const { hide, sandbox } = await forOwner(given);
        return hidingErrors(hide, async () => hide((await agent.history?.(id, sandbox, signal)) ?? null));
      },
    }),
    ...(agent.login && {
      login: async (sandbox, signal) => {
        if (credentials.perOwner) return LOGIN_PER_OWNER;
        const given = await withShared(sandbox);
        return looking(async () => (await agent.login?.(given, signal)) ?? null);
      },
    }),
    ...(agent.storage && { storage: async (sandbox) => (await agent.storage?.(forLook(sandbox))) ?? agent.name }),
    ...(agent.list && {
      list: async (sandbox, signal) => {
        const given = await withShared(sandbox);
        return looking(async () => (await agent.list?.(given, signal)) ?? null);
      },
    }),
    ...(agent.where && { where: async (sandbox) => (await agent.where?.(forLook(sandbox))) ?? null }),
    ...(agent.doubt && {
      doubt: (sandbox) => looking(async () => (await agent.doubt?.(forLook(sandbox))) ?? null),
    }),
    ...withoutSandbox(agent),
  };
}

/** What needs no sandbox needs no credentials. */
function withoutSandbox(agent: Agent): Pick<Agent, 'howToAllow' | 'lacks'> {
  return {
    ...(agent.howToAllow && { howToAllow: agent.howToAllow.bind(agent) }),
    ...(agent.lacks && { lacks: agent.lacks.bind(agent) }),
  };
}

const LOGIN_PER_OWNER = { loggedIn: null, hint: 'each owner has credentials of its own' };

/** The sandbox with a `spawn` that gives its programs these credentials: as variables, or as files in its home. */
async function withEnvironment(sandbox: OpenSandbox, credentials: Credentials): Promise<OpenSandbox> {
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

/** Lists the files that we have written into the home of the sandbox. It is in the state of the sandbox. */
const WRITTEN = 'throughline-credentials.json';
const MOST_WRITTEN = 65_536;

/**
 * A file is written when its value is new. An agent may change the file afterwards, for example to renew its login. What it has written
 * stays until we have another value.
 */
async function putFiles(sandbox: OpenSandbox, files: readonly HomeFile[]): Promise<void> {
  if (!sandbox.ownHome) {
    throw new ThroughlineError(
      'agent_unavailable',
      `Cannot write ${files[0]?.name} of the agent's credentials: in these sandboxes the agent has no home of its own, only that of a person.`,
      {
        hint: 'Give it as a variable, or set "sandbox.kind" to one with homes of their own. See docs/sandboxes.md.',
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

/** The agent can change this list. The worst result is that it gets a file again, or keeps an old one. */
async function writtenIn(state: Folder): Promise<Readonly<Record<string, unknown>>> {
  const read = await state.read(WRITTEN, { most: MOST_WRITTEN });
  return (read && parseObject(Buffer.from(read.bytes).toString('utf8'))) ?? {};
}

const digestOf = (value: string) => createHash('sha256').update(value).digest('hex');

type Hide = ReturnType<typeof hides>;

/** Removes the values from what `work` throws, too. */
async function hidingErrors<T>(hide: Hide, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ThroughlineError)) throw error;
    const { code, message, hint } = error;
    const hidden = { message: hide(message), hint: hide(hint) };
    if (hidden.message === message && hidden.hint === hint) throw error;
    throw new ThroughlineError(code, hidden.message, hidden.hint === undefined ? {} : { hint: hidden.hint });
  }
}

/** The session, with the values removed from what its agent says. */
function hidingSession(session: AgentSession, taken: Credentials): AgentSession {
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
      for await (const event of withWholeValues(session.prompt(request), unfinished)) yield hide(event);
    },
    ...(session.transcript && { transcript: async (from) => (await session.transcript?.(from)) ?? null }),
    ...(session.wording && { wording: (content) => session.wording?.(content) ?? content }),
    ...(session.choose && { choose: async (choices) => hide((await session.choose?.(choices)) ?? 'set') }),
    ...(session.lacks && { lacks: (choices) => hide(session.lacks?.(choices) ?? null) }),
    position: () => session.position(),
    allowTools: () => session.allowTools(),
    answer: (permission, option) => session.answer(permission, option),
    close: () => session.close(),
    kill: () => session.kill(),
  };
}

/**
 * The same events, with no value cut in two. The end of a text that may be the beginning of a value is held back until the next piece of
 * the text. Events that are no part of the record, such as figures of usage, may overtake it.
 */
async function* withWholeValues(
  events: AsyncIterable<AgentEvent>,
  unfinished: (text: string) => number,
): AsyncGenerator<AgentEvent> {
  let held: Update | null = null;
  for await (const event of events) {
    const text: string | null = event.type === 'update' ? chunkText(event.update) : null;
    if (held !== null && endsText(held, event)) {
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

/** Whether the record has this event after the text that is held. */
function endsText(held: Update, event: AgentEvent): boolean {
  if (event.type !== 'update') return event.type === 'permission' || event.type === 'ended';
  const { update } = event;
  if (chunkText(update) === null) return update.sessionUpdate === 'tool_call' || update.sessionUpdate === RETRACTED;
  return JSON.stringify(withText(held, '')) !== JSON.stringify(withText(update, ''));
}

function withText(chunk: Update, text: string): Update {
  const content = 'content' in chunk ? (chunk.content as object) : {};
  return { ...chunk, content: { ...content, text } } as Update;
}
