import { expect, test } from 'vitest';
import { ThroughlineError } from '../../core/errors.ts';
import { chunkText } from '../../core/turn/update.ts';
import type { Agent, AgentEvent, AgentSession } from '../../ports/agent.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import { type AgentCredentials, withCredentials } from './credentials.ts';

/** An agent all of whose methods start its program. Gives the environments that it was started with. */
function watched(credentials: AgentCredentials) {
  const seen: Record<string, string>[] = [];
  const sandbox = {
    spawn: async (_: readonly string[], { env }: { env: Record<string, string> }) => void seen.push(env),
  } as unknown as OpenSandbox;
  const starts = async (given: OpenSandbox) => {
    await given.spawn(['agent'], { env: { OWN: '1' } });
    return null as never;
  };
  const agent: Agent = {
    ...{ name: 'agent', traits: starts, where: starts, doubt: starts, storage: starts, login: starts, list: starts },
    open: ({ sandbox: given }) => starts(given).then(() => ({ ok: false, reason: 'refused', message: 'a KEY-OF-ANN' })),
    history: (_, given) => starts(given),
    position: (_, given) => starts(given),
    tail: (_, __, given) => starts(given),
  };
  return { agent: withCredentials(agent, credentials), sandbox, seen };
}

const signal = new AbortController().signal;
const open = (agent: Agent, sandbox: OpenSandbox) =>
  agent.open({ how: { kind: 'new', id: null }, noTools: false, signal, sandbox });

test('a program that acts for an owner gets the owner’s credentials; a probe gets only the shared ones', async () => {
  const of = async (owner: string | null) => (owner === null ? { ALL: 'a' } : { ALL: 'a', KEY: `KEY-OF-${owner}` });
  const { agent, sandbox, seen } = watched({ perOwner: true, of });
  const anns = { ...sandbox, owner: 'ANN' };
  expect(await open(agent, anns)).toMatchObject({ message: 'a [KEY]' });
  await agent.history?.('s', anns, signal);
  expect(seen.splice(0)).toEqual(new Array(2).fill({ OWN: '1', ALL: 'a', KEY: 'KEY-OF-ANN' }));
  await agent.traits(anns);
  await agent.where?.(anns);
  await agent.doubt?.(anns);
  await agent.storage?.(anns);
  await agent.list?.(anns, signal);
  expect(seen.splice(0)).toEqual(new Array(5).fill({ OWN: '1', ALL: 'a' }));
  // No program is started, because the answer is different for each owner.
  expect(await agent.login?.(sandbox, signal)).toMatchObject({
    loggedIn: null,
    hint: expect.stringContaining('each owner'),
  });
  expect(seen).toEqual([]);
});

test('unreadable credentials fail the session, but not a probe of the agent', async () => {
  const of = async () => {
    throw new ThroughlineError('agent_unavailable', 'the variable is not set');
  };
  const { agent, sandbox, seen } = watched({ perOwner: false, of });
  await agent.traits(sandbox);
  expect(seen.splice(0)).toEqual([{ OWN: '1' }]);
  await expect(open(agent, sandbox)).rejects.toThrow('the variable is not set');
  await expect(agent.login?.(sandbox, signal)).rejects.toThrow('the variable is not set');
  expect(seen).toEqual([]);
});

test('the result and the errors of a probe contain no shared value', async () => {
  const says = async () => ({ problem: 'refused: the key KEY-OF-ALL is wrong' }) as never;
  const fails = async () => {
    throw new ThroughlineError('agent_unavailable', 'it said KEY-OF-ALL', { hint: 'not KEY-OF-ALL' });
  };
  const of = async () => ({ KEY: 'KEY-OF-ALL' });
  const saying = { name: 'agent', traits: says, login: says, list: says, doubt: says } as unknown as Agent;
  const failing = { name: 'agent', traits: fails, login: fails, list: fails, doubt: fails } as unknown as Agent;
  const sandbox = {} as OpenSandbox;
  for (const look of [
    (agent: Agent) => agent.traits(sandbox),
    (agent: Agent) => agent.login?.(sandbox, signal),
    (agent: Agent) => agent.list?.(sandbox, signal),
    (agent: Agent) => agent.doubt?.(sandbox),
  ]) {
    expect(await look(withCredentials(saying, { perOwner: false, of }))).toEqual({
      problem: 'refused: the key [KEY] is wrong',
    });
    await expect(look(withCredentials(failing, { perOwner: false, of }))).rejects.toMatchObject({
      ...{ code: 'agent_unavailable', message: 'it said [KEY]', hint: 'not [KEY]' },
    });
  }
});

test('a value in several chunks is found, also with events between them that are not in the record', async () => {
  const update = (sessionUpdate: string) => ({ type: 'update', update: { sessionUpdate } }) as AgentEvent;
  const said = [
    ...[chunk('it is sk-value'), update('usage_update'), { type: 'usage', usage: {} } as const, chunk('-of-')],
    ...[update('tool_call_update'), { type: 'session', id: 's' } as const, chunk('ann, s'), update('tool_call')],
    ...[chunk('k-value-of-ann'), { type: 'ended', outcome: { kind: 'completed' } } as const],
  ];
  const { agent, sandbox } = speaking(said);
  const opened = await open(agent, sandbox);
  if (!opened.ok) return expect.unreachable();
  const heard: string[] = [];
  const request = { id: 'p', content: [{ type: 'text', text: 'x' }], expected: null, signal } as const;
  for await (const event of opened.session.prompt(request)) {
    heard.push(event.type === 'update' ? (chunkText(event.update) ?? event.update.sessionUpdate) : event.type);
  }
  expect(heard).toEqual([
    ...['it is ', 'usage_update', 'usage', 'tool_call_update', 'session', '[KEY], ', 's', 'tool_call'],
    ...['k-value-of-ann', 'ended'],
  ]);
});

test('a value that an agent sends in several chunks, or that is in its storage, is not passed on', async () => {
  const said = [
    ...['no s', 'ecre', 'ts: sk-', 'value-', 'of-ann, s', 'k-value-o', 'f!'].map((text) => chunk(text)),
    ...[chunk('sk-value'), chunk('-of-ann', 'thought'), { type: 'session', id: 's' } as const, chunk('ends with sk')],
    { type: 'ended', outcome: { kind: 'completed' } } as const,
  ];
  const { agent, sandbox } = speaking(said);
  const opened = await open(agent, sandbox);
  if (!opened.ok) return expect.unreachable();
  const heard: AgentEvent[] = [];
  const request = { id: 'p', content: [{ type: 'text', text: 'x' }], expected: null, signal } as const;
  for await (const event of opened.session.prompt(request)) heard.push(event);
  const texts = heard.map((event) => (event.type === 'update' ? (chunkText(event.update) ?? '') : event.type));
  expect(texts.join('')).toBe('no secrets: [KEY], sk-value-of!sk-value-of-annsessionends with skended');
  expect(texts[0]).toBe('no ');
  expect(heard.filter((event) => event.type === 'update').at(-2)?.update.sessionUpdate).toBe('agent_message_chunk');

  expect(await agent.tail('s', { prompt: 'p', position: null }, sandbox)).toMatchObject({
    updates: [{ content: { text: 'it is [KEY]' } }],
  });
  const unknown = speaking(said, async () => {
    throw new ThroughlineError('agent_unavailable', 'the vault does not answer');
  });
  expect(await unknown.agent.tail('s', { prompt: 'p', position: null }, sandbox)).toBeNull();
});

const chunk = (text: string, what = 'message') =>
  ({ type: 'update', update: { sessionUpdate: `agent_${what}_chunk`, content: { type: 'text', text } } }) as AgentEvent;

/** An agent that sends these texts, and whose storage contains the value. */
function speaking(said: readonly AgentEvent[], of: AgentCredentials['of'] = async () => ({ KEY: 'sk-value-of-ann' })) {
  const session = {
    prompt: async function* () {
      yield* said;
    },
  } as unknown as AgentSession;
  const stored = chunk('it is sk-value-of-ann');
  const agent = {
    name: 'agent',
    open: async () => ({ ok: true, session, proof: 'none' }),
    tail: async () => ({ updates: stored.type === 'update' ? [stored.update] : [], position: null }),
  } as unknown as Agent;
  return { agent: withCredentials(agent, { perOwner: true, of }), sandbox: {} as OpenSandbox };
}

test('what an agent and its session do not have is passed on, without the values', async () => {
  const session = { lacks: () => 'no mode "sk-value"' } as unknown as AgentSession;
  const agent = {
    name: 'agent',
    open: async () => ({ ok: true, session, proof: 'none' }),
    lacks: async () => 'no mode "x"',
    howToAllow: async (calls: readonly unknown[]) => `${calls.length} calls`,
  } as unknown as Agent;
  const wrapped = withCredentials(agent, { perOwner: false, of: async () => ({ KEY: 'sk-value' }) });
  expect([await wrapped.lacks?.({}), await wrapped.howToAllow?.([1])]).toEqual(['no mode "x"', '1 calls']);
  const opened = await open(wrapped, {} as OpenSandbox);
  expect(opened.ok && opened.session.lacks?.({})).toBe('no mode "[KEY]"');
});
