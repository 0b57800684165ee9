// How the process of a session is ended when the session is no longer used.
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { BenchHome } from '../../../bench/support/bench-home.ts';
import { said } from '../../../bench/support/in-process-agent.ts';
import { createEngine } from '../../../src/engine/engine.ts';
import type { Agent, AgentEvent, AgentSession, PromptRequest } from '../../../src/ports/agent.ts';
import type { Fence } from '../../../src/ports/store/leases.ts';
import type { Store } from '../../../src/ports/store.ts';
import { ended, until } from '../support/conversations.ts';

test('a session whose turn was cancelled while it was being opened is closed', async () => {
  await using home = new BenchHome();
  const double = new AgentDouble();
  const opening = Promise.withResolvers<void>();
  double.beforeOpen = () => opening.promise;
  const { engine } = await home.open({ agent: double.agent });
  const { id } = await engine.ensure({ key: 'chat' });
  const { turn } = await engine.submit(id, 'Hello.');
  await until('the session is being opened', () => double.opening);
  await engine.cancel(turn.id);
  await until('the turn has seen the cancel', () => double.signals.every(({ aborted }) => aborted));
  opening.resolve();
  expect((await ended(engine, turn)).state).toBe('cancelled');
  expect(double.sessions).toMatchObject([{ closed: 1, killed: 0 }]);
});

test('a session that refused the history is killed before another one is opened', async () => {
  await using home = new BenchHome();
  const double = new AgentDouble();
  const { engine } = await home.open({ agent: double.agent });
  const { id } = await engine.ensure({ key: 'chat' });
  for (const text of ['One.', 'Two.', 'Three.']) await ended(engine, (await engine.submit(id, text)).turn);
  const before = double.sessions.length;
  const message = 'This is too long.';
  double.answers.push({ kind: 'failed', code: 'too_long', message, again: false });
  const { turn } = await engine.submit(id, 'Four.', { restore: { rebuild: true, rung: 'transcript' } });
  expect((await ended(engine, turn)).state).toBe('completed');
  const [refusing, taking, ...more] = double.sessions.slice(before);
  expect(more).toEqual([]);
  expect(refusing).toMatchObject({ closed: 0, killed: 1 });
  expect(taking?.killed).toBe(0);
});

test('a session without an id is killed when its lease is lost during the turn', async () => {
  await using home = new BenchHome();
  const double = new AgentDouble({ named: false });
  const { parts } = await home.open({ agent: double.agent });
  const lost: Fence[] = [];
  const store = withRenew(parts.store, async (fences) => lost.filter(({ epoch }) => fences[0]?.epoch === epoch));
  const engine = createEngine({ ...parts, store, settings: { ...parts.settings, leaseMs: 90 } }, 'local');
  const { id } = await engine.ensure({ key: 'chat' });
  double.answers.push('when aborted');
  await engine.submit(id, 'Hello.');
  await until('the prompt was sent', () => double.prompts === 1);
  lost.push({ conversation: id, owner: 'local', epoch: 1 });
  await until('its process was killed', () => double.sessions[0]?.killed === 1);
  await engine.close({ graceMs: 0 });
});

test('the loss of an earlier lease does not stop the turn that runs under the next one', async () => {
  await using home = new BenchHome();
  const double = new AgentDouble();
  const { parts } = await home.open({ agent: double.agent });
  const [renewing, renewed] = [Promise.withResolvers<readonly Fence[]>(), Promise.withResolvers<Fence[]>()];
  const renew = async (fences: readonly Fence[], leaseMs: number) => {
    if (fences[0]?.epoch !== 1) return parts.store.renew(fences, leaseMs);
    renewing.resolve(fences);
    return renewed.promise;
  };
  const settings = { ...parts.settings, leaseMs: 600, idleMs: 300 };
  const engine = createEngine({ ...parts, store: withRenew(parts.store, renew), settings }, 'local');
  const { id } = await engine.ensure({ key: 'chat' });
  await ended(engine, (await engine.submit(id, 'One.')).turn);
  const first = await renewing.promise; // the first lease is being renewed, and the answer comes late
  await until('nobody holds the conversation', async () => (await parts.store.workers()).length === 0);
  const mayAnswer = Promise.withResolvers<void>();
  double.answers.push(mayAnswer.promise);
  const { turn } = await engine.submit(id, 'Two.');
  await until('the second turn runs', () => double.prompts === 2);
  renewed.resolve([...first]);
  await new Promise(setImmediate); // the engine has handled the late answer
  mayAnswer.resolve();
  expect(await ended(engine, turn)).toMatchObject({ state: 'completed', attempt: 1 });
  expect(double.sessions.map(({ killed }) => killed)).toEqual([0, 0]);
  await engine.close();
});

function withRenew(store: Store, renew: Store['renew']): Store {
  return new Proxy(store, {
    get(target, name) {
      const value = name === 'renew' ? renew : Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** How a prompt ends. A promise: it completes when the promise has resolved. */
type Answer = Extract<AgentEvent, { type: 'ended' }>['outcome'] | Promise<void> | 'when aborted';

/** An agent in this process that counts how its sessions are ended. */
class AgentDouble {
  readonly sessions: { closed: number; killed: number }[] = [];
  readonly signals: AbortSignal[] = [];
  /** How the next prompts end. Without an entry they complete. */
  readonly answers: Answer[] = [];
  readonly agent: Agent;
  beforeOpen: () => Promise<void> = async () => {};
  opening = false;
  prompts = 0;
  readonly #named: boolean;

  constructor({ named = true } = {}) {
    this.#named = named;
    const no = { resume: false, load: false, list: false, rehydrate: false, noTools: false, rewind: false };
    this.agent = {
      name: 'double',
      traits: async () => ({
        ...{
          version: '1',
          id: 'issued',
          ...no,
          position: false,
          images: false,
          window: 100_000,
          windowFrom: 'setting',
        },
      }),
      open: async ({ signal }) => {
        this.opening = true;
        this.signals.push(signal);
        await this.beforeOpen();
        return { ok: true, session: this.#session(), proof: 'counted' };
      },
      position: async () => null,
      tail: async () => null,
    };
  }

  #session(): AgentSession {
    const counts = { closed: 0, killed: 0 };
    this.sessions.push(counts);
    return {
      id: this.#named ? randomUUID() : null,
      process: null,
      get alive() {
        return counts.closed + counts.killed === 0;
      },
      position: async () => null,
      prompt: (request) => this.#answer(request),
      allowTools: async () => true,
      answer() {},
      close: async () => {
        counts.closed += 1;
      },
      kill: async () => {
        counts.killed += 1;
      },
    };
  }

  async *#answer({ signal }: PromptRequest): AsyncGenerator<AgentEvent> {
    this.prompts += 1;
    const answer = this.answers.shift();
    if (answer === 'when aborted') {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      return yield { type: 'ended', outcome: { kind: 'cancelled' } };
    }
    if (answer !== undefined && !(answer instanceof Promise)) return yield { type: 'ended', outcome: answer };
    await answer;
    yield { type: 'update', update: said('Hello.') };
    yield { type: 'ended', outcome: { kind: 'completed' } };
  }
}
