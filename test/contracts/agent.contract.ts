import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Prompt, promptText } from '../../src/core/turn/content.ts';
import { replyText } from '../../src/core/turn/record.ts';
import { systemProcesses } from '../../src/host/processes.ts';
import type { Agent, AgentEvent, AgentSession, OpenHow } from '../../src/ports/agent.ts';
import { ask, effects, send, type TestSandboxes, type Told, told, until } from './agent-sandbox.ts';
import { identityOf } from './liveness.ts';

/** What the suite needs of an agent, besides the port: prompts that make it do certain things. */
export interface AgentUnderTest {
  readonly agent: Agent;
  readonly sandboxes: TestSandboxes;
  /** Tells it a codeword. */
  tell(codeword: string): Prompt;
  /** Asks for every codeword that it knows. Its answer must contain each of them. */
  readonly recall: Prompt;
  /** Makes it answer a little, and then continue until it is cancelled. */
  readonly endless: Prompt;
  /** Makes it call a tool that appends a line to the file in the working directory, then end. */
  tool(file: string): Prompt;
  /** Makes it call that tool, answer a little, and then continue until it is cancelled. */
  toolThenEndless(file: string): Prompt;
}

/** An agent, a sandbox for it, and functions that open sessions there. */
async function readyWith(setUp: () => Promise<AgentUnderTest>) {
  const given = await setUp();
  const { agent, sandboxes } = given;
  const sandbox = await sandboxes.sandbox();
  const traits = await agent.traits(sandbox);
  let ids = 0;
  const fresh = (): OpenHow => {
    ids += 1;
    const id = `00000000-0000-4000-8000-${String(ids).padStart(12, '0')}`;
    return { kind: 'new', id: traits.id === 'assigned' ? id : null };
  };
  const open = (how: OpenHow = fresh(), noTools = false) => sandboxes.open(agent, sandbox, how, noTools);
  return { ...given, sandbox, traits, fresh, open };
}

type Ready = Awaited<ReturnType<typeof readyWith>>;

function idOf(session: AgentSession): string {
  if (session.id === null) throw new Error('the session has no id yet');
  return session.id;
}

/**
 * One suite for the Agent port, for every adapter. What an agent cannot do, by its traits, must fail as data. Real agents take long to
 * start, so tests share a session where they can.
 */
export function agentContract(name: string, setUp: () => Promise<AgentUnderTest>): void {
  describe(`the agent contract: ${name}`, () => {
    inOneSession(setUp);
    inAClosedSession(setUp);
    inSessionsOfTheirOwn(setUp);
  });
}

/** The tests run one after another in one session; the last two end it. */
function inOneSession(setUp: () => Promise<AgentUnderTest>): void {
  describe('in one session', () => {
    let given: Ready;
    let session: AgentSession;
    /** What was known of the session when it was opened; `first`: after its first turn. */
    let opened: { readonly how: OpenHow; readonly id: string | null; readonly started: readonly object[] };
    let first: Told & { readonly position: string | null; readonly id: string | null };
    let named: object | null;

    beforeAll(async () => {
      given = await readyWith(setUp);
      named = (await given.agent.program?.(given.sandbox)) ?? null;
      const how = given.fresh();
      const started: object[] = [];
      const { sandbox } = given;
      const spawn: typeof sandbox.spawn = (command, options) => {
        started.push({ command, ...options });
        return sandbox.spawn(command, options);
      };
      session = await given.sandboxes.open(given.agent, { ...sandbox, spawn }, how);
      opened = { how, id: session.id, started };
      const told = await ask(session, given.tell('amber'));
      first = { ...told, position: await session.position(), id: session.id };
    });
    afterAll(() => given.sandboxes.dispose());

    /** The session, or a new one if the last test has ended it. */
    const living = async () => {
      if (!session.alive) session = await given.open();
      return session;
    };

    test('a new session has its own process, and the assigned id if there is one', () => {
      const { how, id } = opened;
      expect(session.alive).toBe(true);
      if (session.process) expect(systemProcesses.status(identityOf(session.process))).toBe('alive');
      if (how.kind === 'new' && how.id !== null) expect(id).toBe(how.id);
    });

    test('a session is opened in the program that the agent names', () => {
      if (named !== null) expect(opened.started).toContainEqual(named);
    });

    test('a prompt is answered; `ended` comes once, and last', () => {
      const { events, outcome, reply, position } = first;
      expect(outcome).toMatchObject({ kind: 'completed' });
      // Nobody else uses the session, so the position after the turn is that of the storage.
      if (outcome.position !== undefined) expect(outcome.position).toBe(position);
      expect(reply).not.toBe('');
      expect(events.filter((event) => event.type === 'ended')).toHaveLength(1);
      expect(events.at(-1)?.type).toBe('ended');
    });

    test('a session has an id by the end of its first turn', () => {
      expect(first.id).toEqual(expect.any(String));
    });

    test('a changed id is announced', async () => {
      const announced = (events: readonly AgentEvent[]) => events.findLast((event) => event.type === 'session')?.id;
      let id = announced(first.events) ?? opened.id;
      expect(first.id).toBe(id);
      for (const word of ['birch', 'cedar']) {
        id = announced((await ask(session, given.tell(word))).events) ?? id;
        expect(session.id).toBe(id);
      }
    });

    test('a live session knows what it was told, and another one does not', async () => {
      const other = await given.open();
      await ask(await living(), given.tell('denim'));
      const { reply } = await ask(session, given.recall);
      expect(reply).toContain('amber');
      expect(reply).toContain('denim');
      expect((await ask(other, given.recall)).reply).not.toContain('amber');
    });

    test('a prompt at the expected position is proved, and one at another position is refuted', async () => {
      const second = await ask(session, given.tell('ebony'), { expected: await session.position() });
      const wrong = await ask(session, given.tell('flint'), { expected: '7:some-other-entry' });
      const proofs = [first, second, wrong].map(({ proof }) => proof);
      expect(proofs).toEqual(given.traits.position ? ['proved', 'proved', 'refuted'] : [null, null, null]);
    });

    test('a prompt whose signal is already aborted is never sent', async () => {
      const { outcome } = await ask(await living(), given.tell('never'), { signal: AbortSignal.abort() });
      expect(outcome).toEqual({ kind: 'cancelled' });
      expect((await ask(session, given.recall)).reply).not.toContain('never');
    });

    test('an abort ends the turn as cancelled', async () => {
      await living();
      const abort = new AbortController();
      const events: AgentEvent[] = [];
      for await (const event of send(session, given.endless, { signal: abort.signal })) {
        events.push(event);
        if (event.type === 'update') abort.abort();
      }
      expect(events.at(-1)).toMatchObject({ type: 'ended', outcome: { kind: 'cancelled' } });
      expect(events.filter((event) => event.type === 'ended')).toHaveLength(1);
    });

    test('a second prompt is refused while one runs, and the first is not disturbed', async () => {
      await living();
      const abort = new AbortController();
      let second: Awaited<ReturnType<typeof ask>> | null = null;
      const first: AgentEvent[] = [];
      for await (const event of send(session, given.endless, { signal: abort.signal })) {
        first.push(event);
        if (event.type !== 'update' || second !== null) continue;
        second = await ask(session, given.tell('amber'));
        abort.abort();
      }
      expect(second?.events).toHaveLength(1);
      expect(second?.outcome.kind).toBe('failed');
      expect(first.at(-1)).toMatchObject({ type: 'ended', outcome: { kind: 'cancelled' } });
    });

    test('the agent stops working when nobody reads its events any more', async () => {
      await living();
      for await (const event of send(session, given.endless)) if (event.type === 'update') break;
      await until('the session is free or gone', async () => {
        return !session.alive || (await ask(session, given.tell('amber'))).outcome.kind === 'completed';
      });
    });

    test('a tool runs once; in the no-tools profile it does not run, until tools are allowed', async () => {
      const file = join(given.sandbox.work, 'effects.log');
      await ask(await living(), given.tool('effects.log'));
      expect(effects(file)).toBe(1);
      if (!given.traits.noTools) return;
      const quiet = await given.open(given.fresh(), true);
      await ask(quiet, given.tool('effects.log'));
      expect(effects(file)).toBe(1);
      if (!(await quiet.allowTools())) return;
      await ask(quiet, given.tool('effects.log'));
      expect(effects(file)).toBe(2);
    });

    test('events that are read late are complete and in order', async () => {
      // The same prompt twice, read at once and late: except for what is random, both must have the same events.
      const atOnce = await ask(await living(), given.tool('late.log'));
      const iterator = send(session, given.tool('late.log'))[Symbol.asyncIterator]();
      const next = await iterator.next();
      await until('it has done all it was told', () => effects(join(given.sandbox.work, 'late.log')) === 2);
      const late = await told(startingWith(next.value as AgentEvent, iterator));
      expect(shapeOf(late.events)).toEqual(shapeOf(atOnce.events));
      expect(late.reply).toBe(atOnce.reply);
    });

    test('after a kill in the middle of a turn, the process has ended and the turn is lost', async () => {
      await living();
      const events: AgentEvent[] = [];
      for await (const event of send(session, given.endless)) {
        events.push(event);
        if (event.type === 'update') await session.kill();
      }
      expect(events.at(-1)).toMatchObject({ type: 'ended', outcome: { kind: 'lost' } });
      expect(session.alive).toBe(false);
      if (session.process) expect(systemProcesses.status(identityOf(session.process))).toBe('dead');
    });

    test('a session whose process has ended refuses a prompt without throwing', async () => {
      await session.kill();
      const { events, outcome } = await ask(session, given.tell('amber'));
      expect(events).toHaveLength(1);
      expect(outcome.kind).toBe('failed');
    });
  });
}

/** A session of three turns, and what can be read of it without its process. */
function inAClosedSession(setUp: () => Promise<AgentUnderTest>): void {
  describe('in a closed session', () => {
    let given: Ready;
    let session: AgentSession;
    const positions: (string | null)[] = [];

    beforeAll(async () => {
      given = await readyWith(setUp);
      session = await given.open();
      for (const prompt of [given.tell('amber'), given.tell('birch'), given.recall]) {
        await ask(session, prompt);
        positions.push(await session.position());
      }
    });
    afterAll(() => given.sandboxes.dispose());

    test('the position changes with every turn and can be read without the process; without the trait it is null', async () => {
      const { agent, sandbox, traits } = given;
      expect(await agent.position(idOf(session), sandbox)).toBe(positions[2]);
      await session.close();
      expect(await agent.position(idOf(session), sandbox)).toBe(positions[2]);
      if (traits.position) expect(new Set(positions).size).toBe(3);
      else expect(positions).toEqual([null, null, null]);
      expect(await agent.position('no-such-session', sandbox)).toBeNull();
    });

    test('the history of a session can be read before it is adopted, and reading changes nothing', async () => {
      const { agent, sandbox, traits } = given;
      if (agent.history === undefined) return;
      const signal = new AbortController().signal;
      const id = idOf(session);
      await session.close();
      const position = await agent.position(id, sandbox);
      const history = await agent.history(id, sandbox, signal);
      expect(await agent.position(id, sandbox)).toBe(position);
      // An agent that can neither load the history nor show its storage has none.
      if (history === null) return expect(traits.load || traits.position).toBe(false);
      expect(history).toMatchObject({ unknownBefore: false, condensed: 0, position });
      const prompts = history.turns.map(({ prompt }) => promptText(prompt));
      expect(prompts).toEqual([given.tell('amber'), given.tell('birch'), given.recall].map(promptText));
      expect(history.turns.map(({ outcome }) => outcome)).toEqual(['completed', 'completed', 'completed']);
      expect(replyText(history.turns[2]?.parts ?? [])).toContain('amber');
      expect(await agent.history('00000000-0000-4000-8000-00000000dead', sandbox, signal)).toBeNull();
    });
  });
}

function inSessionsOfTheirOwn(setUp: () => Promise<AgentUnderTest>): void {
  describe('in sessions of their own', () => {
    let given: Ready;
    beforeEach(async () => {
      given = await readyWith(setUp);
    });
    afterEach(() => given.sandboxes.dispose());

    test('traits do not change', async () => {
      const { agent, sandbox, traits } = given;
      expect(await agent.traits(sandbox)).toEqual(traits);
      expect(traits.version).not.toBe('');
      expect(traits.window).toBeGreaterThan(0);
    });

    test('close and kill may be called in any order, any number of times', async () => {
      const { open } = given;
      const session = await open();
      await Promise.all([session.close(), session.close(), session.kill()]);
      await session.kill();
      await session.close();
      session.answer('no such question', null);
      expect(session.alive).toBe(false);
    });

    test('an aborted opening leaves nothing open', async () => {
      const { agent, sandbox, fresh } = given;
      const abort = new AbortController();
      const opening = agent.open({ how: fresh(), sandbox, noTools: false, signal: abort.signal });
      abort.abort();
      expect(await opening).toMatchObject({ ok: false });
    });

    test('a resumed session knows what it was told before its process ended', async () => {
      const { agent, sandbox, traits, open } = given;
      const session = await open();
      await ask(session, given.tell('amber'));
      const before = await session.position();
      const id = idOf(session);
      await session.kill();
      const request = { sandbox, noTools: false, signal: new AbortController().signal };
      const opened = await agent.open({ how: { kind: 'resume', id }, ...request });
      expect(opened.ok).toBe(traits.resume || traits.load);
      if (!opened.ok) return;
      const { reply, proof } = await ask(opened.session, given.recall, { expected: before });
      await opened.session.kill();
      expect(reply).toContain('amber');
      expect(proof).toBe(traits.position ? 'proved' : null);
    });

    test('a session that the agent does not have cannot be resumed', async () => {
      const { agent, sandbox, traits } = given;
      for (const id of ['00000000-0000-4000-8000-00000000dead', '../../etc/passwd', '']) {
        const request = { sandbox, noTools: false, signal: new AbortController().signal };
        const opened = await agent.open({ how: { kind: 'resume', id }, ...request });
        const reason = traits.resume || traits.load ? 'not_found' : expect.any(String);
        expect(opened).toMatchObject({ ok: false, reason });
      }
    });

    test('after a kill, the tail shows what the storage has of the turn: text, and tools', async () => {
      const { agent, sandbox, traits, open } = given;
      const session = await open();
      await ask(session, given.tell('amber'));
      const before = await session.position();
      const prompt = crypto.randomUUID();
      const stored = () => agent.tail(idOf(session), { prompt, position: before }, sandbox);
      const hasBoth = async () => {
        const kinds = (await stored())?.updates.map((update) => update.sessionUpdate) ?? [];
        return kinds.includes('tool_call') && kinds.includes('agent_message_chunk');
      };
      for await (const event of send(session, given.toolThenEndless('tail.log'), { id: prompt })) {
        if (event.type !== 'update' || event.update.sessionUpdate !== 'agent_message_chunk') continue;
        // An agent may send an update before it stores it.
        if (traits.position) await until('it has stored that', hasBoth);
        await session.kill();
      }
      if (!traits.position) {
        expect(await stored()).toBeNull();
        return;
      }
      expect(await hasBoth()).toBe(true);
      expect((await stored())?.position).toBe(await agent.position(idOf(session), sandbox));
      expect(await agent.tail('no-such-session', { prompt, position: null }, sandbox)).toBeNull();
    });
  });
}

async function* startingWith(first: AgentEvent, rest: AsyncIterator<AgentEvent>): AsyncGenerator<AgentEvent> {
  yield first;
  yield* { [Symbol.asyncIterator]: () => rest };
}

const OF_THE_TURN = /_chunk$|^tool_call|^plan$/;

/**
 * What the agent said and did, in order. Not the number of chunks, nor when it reported its usage, commands and the like: these may differ.
 */
function shapeOf(events: readonly AgentEvent[]): string[] {
  const kinds = events.flatMap((event) => {
    if (event.type !== 'update') return event.type === 'ended' ? [event.outcome.kind] : [];
    const { sessionUpdate, status } = event.update as { sessionUpdate: string; status?: string };
    return OF_THE_TURN.test(sessionUpdate) ? [`${sessionUpdate} ${status ?? ''}`] : [];
  });
  return kinds.filter((kind, i) => kind !== kinds[i - 1]);
}
