import { ThroughlineError } from '../../../src/core/errors.ts';
import { DEFAULT_RESTORE } from '../../../src/core/restore/restore-settings.ts';
import { hasEnded } from '../../../src/core/turn/turn.ts';
import type { Fence } from '../../../src/ports/store/leases.ts';
import type { NewTurn } from '../../../src/ports/store/turns.ts';
import type { Write as StoreWrite } from '../../../src/ports/store/writes.ts';
import type { Store } from '../../../src/ports/store.ts';
import { checkConversation, same } from './check.ts';
import type { Command, WriteCommand } from './commands.ts';
import * as model from './model.ts';
import { toStore } from './writes.ts';

const LEASE_MS = 1_000;
const AGENTS = ['a', 'b'];
/** The last worker knows only one of the agents. */
const KNOWN = [AGENTS, AGENTS, ['a']] as const;

/** A lease that one worker believes to hold. As a frozen process, it does not notice when it loses it. */
interface HeldLease {
  readonly fence: Fence;
  counter: number;
  last: { counter: number; writes: readonly model.Write[] } | null;
}

/** A store and its model, with the same commands for both. Every sequence has its own place and names. */
export class World {
  readonly #stores: readonly Store[];
  readonly #clock: { time: number };
  readonly #name: string;
  readonly #note: (line: string) => void;
  readonly #conversations: model.Conversation[] = [];
  readonly #leases = new Map<string, HeldLease>();
  readonly #requests = new Map<string, { body: string; turn: string; seq: number }>();
  /** How many events of a conversation were already checked. At the end all are checked once more. */
  readonly #seen = new Map<string, number>();
  #made = 0;

  constructor(stores: readonly Store[], clock: { time: number }, name: string, note: (line: string) => void) {
    this.#stores = stores;
    this.#clock = clock;
    this.#name = name;
    this.#note = note;
  }

  async start(): Promise<void> {
    for (let i = 0; i < 2; i += 1) {
      const id = this.#id('conversation');
      await this.#store(0).ensureConversation('owner', this.#spec(id));
      this.#conversations.push(model.newConversation(id, 'conversation.created'));
    }
  }

  async run(command: Command): Promise<void> {
    for (const conversation of await this.#do(command)) {
      const seen = this.#seen.get(conversation.id) ?? 0;
      await checkConversation(this.#store(1), conversation, this.#clock.time, seen);
      this.#seen.set(conversation.id, conversation.events.length);
    }
  }

  /** Brings every accepted turn to its one end, which must be possible, and then checks everything once more. */
  async finish(): Promise<void> {
    for (const { id } of [...this.#conversations]) {
      this.#clock.time += LEASE_MS + 1;
      for (let steps = 0; model.open(this.#current({ id })).length > 0; steps += 1) {
        if (steps > 60) throw new Error(`the turns of ${id} do not come to an end`);
        await this.#advance(0, this.#current({ id }));
      }
      await checkConversation(this.#store(0), this.#current({ id }), this.#clock.time);
      same('the chain', (await this.#store(0).verify('owner', id)).broken, null);
      const { events, turns } = this.#current({ id });
      for (const turn of turns) {
        const count = (what: string) => events.filter(([kind, of]) => kind === what && of === turn.id).length;
        // A turn that came with a fork was accepted elsewhere, and has neither of the two events here.
        if (!hasEnded(turn.state) || count('turn.ended') !== count('turn.queued')) {
          throw new Error(`turn ${turn.n} is ${turn.state} and ended ${count('turn.ended')} times`);
        }
      }
    }
  }

  async #do(command: Command): Promise<readonly model.Conversation[]> {
    switch (command.do) {
      case 'wait':
        this.#clock.time += command.ms;
        return [];
      case 'renew':
        return this.#renew(command.worker);
      case 'forget':
        await this.#store(command.worker).forgetWorker(this.#worker(command.worker));
        for (const one of this.#conversations.filter(({ holder }) => holder === this.#worker(command.worker))) {
          model.endLiving(one);
          one.holder = null;
        }
        return this.#conversations;
      default: {
        const conversation = this.#pick(this.#conversations, command.conversation);
        await this.#doOn(conversation, command);
        return [conversation];
      }
    }
  }

  async #doOn(conversation: model.Conversation, command: Extract<Command, { conversation: number }>): Promise<void> {
    switch (command.do) {
      case 'submit':
        return this.#submit(conversation, command);
      case 'advance':
        for (let i = 0; i <= command.steps; i += 1) await this.#advance(command.worker, conversation);
        return;
      case 'claim':
        return this.#claim(conversation, command.worker, command.named);
      case 'begin':
        return this.#begin(conversation, command.worker);
      case 'commit':
        return this.#commit(conversation, command.worker, command.writes);
      case 'repeat':
        return this.#repeat(conversation, command.worker);
      case 'release':
        return this.#release(conversation, command.worker);
      case 'cancel': {
        const turn = this.#maybe(conversation.turns, command.turn);
        if (turn === null) return;
        model.cancel(conversation, turn);
        const now = await this.#store(command.turn).requestCancel('owner', turn.id, 'somebody');
        return same('the state after a cancel', now.state, turn.state);
      }
      case 'answer':
        return this.#answer(conversation, command.permission, command.option);
      case 'fork':
        return this.#fork(conversation, command.back);
    }
  }

  // ── without a lease ──

  async #submit(conversation: model.Conversation, command: Extract<Command, { do: 'submit' }>): Promise<void> {
    const named = command.agent === null ? null : this.#pick(AGENTS, command.agent);
    const request = command.request === null ? null : `${this.#name} request ${command.request}`;
    const session = command.session === null ? {} : { session: this.#native(command.session) };
    const turn: NewTurn = {
      id: this.#id('turn'),
      conversation: conversation.id,
      requestId: request,
      agent: named,
      defaultAgent: 'a',
      prompt: [{ type: 'text', text: `prompt ${command.text}` }],
      options: session,
      retryOf: null,
    };
    const body = JSON.stringify([conversation.id, named, command.text, session]);
    const known = request === null ? undefined : this.#requests.get(request);
    const agent = named ?? conversation.turns.at(-1)?.agent ?? 'a';
    await this.#expect(
      'submit',
      () => {
        if (known !== undefined) {
          if (known.body !== body) throw new model.Refused('conflict');
          return { turn: known.turn, seq: known.seq, duplicate: true };
        }
        if (session.session !== undefined) this.#refuseElsewhere(conversation, agent, session.session);
        const after = structuredClone(conversation);
        const accepted = model.submit(after, turn.id, agent);
        const seq = after.events.length;
        Object.assign(conversation, after);
        if (request !== null) this.#requests.set(request, { body, turn: accepted.id, seq });
        return { turn: accepted.id, seq, duplicate: false };
      },
      async () => {
        const { turn: accepted, seq, duplicate } = await this.#store(command.text).enqueue('owner', turn);
        return { turn: accepted.id, seq, duplicate };
      },
    );
  }

  #others(conversation: model.Conversation): model.Conversation[] {
    return this.#conversations.filter((one) => one !== conversation);
  }

  #refuseElsewhere(conversation: model.Conversation, agent: string, id: string): void {
    const others = this.#others(conversation).flatMap((one) => one.sessions);
    if (others.some((one) => one.id === id && one.agent === agent && model.isUsable(one)))
      throw new model.Refused('refused');
  }

  async #answer(conversation: model.Conversation, which: number, option: number): Promise<void> {
    const permission = this.#maybe(conversation.permissions, which);
    if (permission === null) return;
    const optionId = ['yes', 'no', 'perhaps'][option] ?? 'perhaps';
    await this.#expect(
      `answer ${optionId}`,
      () => model.answer(conversation, permission, optionId !== 'perhaps'),
      async () => void (await this.#store(option).answer('owner', permission.id, optionId, 'somebody')),
    );
  }

  async #fork(conversation: model.Conversation, back: number): Promise<void> {
    if (this.#conversations.length > 3) return;
    const n = model.head(conversation) - back;
    const id = this.#id('conversation');
    await this.#expect(
      `fork at ${n}`,
      () => {
        if (n < 0 || n > model.head(conversation)) throw new model.Refused('invalid');
      },
      async () => void (await this.#store(0).fork('owner', conversation.id, n, this.#spec(id))),
    );
    if (n < 0 || n > model.head(conversation)) return;
    const copied = await this.#store(0).turns('owner', id, { after: 0, limit: 100 });
    const history = conversation.history.filter((one) => one <= n);
    const turns = history.map((one, i) => {
      const source = conversation.turns.find((turn) => turn.n === one) as model.Turn;
      // The turns of a fork are new ones that were never begun. Only the records are copied.
      return {
        ...source,
        id: copied[i]?.id ?? '',
        attempt: copied[i]?.attempt ?? 0,
        sent: false,
        cancelRequested: false,
      };
    });
    const fork = model.newConversation(id, 'conversation.forked');
    Object.assign(fork, { titled: conversation.titled, nextN: n + 1, turns, history });
    for (const turn of fork.turns) turn.sessionId = copied.find((one) => one.id === turn.id)?.sessionId ?? null;
    this.#conversations.push(fork);
    await checkConversation(this.#store(1), fork, this.#clock.time);
  }

  // ── the lease ──

  async #claim(conversation: model.Conversation, worker: number, named: boolean): Promise<void> {
    const agents = this.#pick(KNOWN, worker);
    const now = this.#clock.time;
    const among = (named ? [conversation] : this.#conversations).filter((one) =>
      model.claimable(one, agents, named, now),
    );
    const request = {
      worker: this.#workerInfo(worker),
      place: this.#name,
      agents,
      driver: 'worker',
      leaseMs: LEASE_MS,
      ...(named ? { conversation: conversation.id } : {}),
    } as const;
    const claim = await this.#store(worker).claim(request);
    this.#note(
      `claim by ${worker}: ${claim === null ? 'nothing' : `${claim.fence.conversation} epoch ${claim.fence.epoch}`}`,
    );
    if (claim === null) return same('claimable conversations', among.length, 0);
    const taken = among.find((one) => one.id === claim.fence.conversation);
    if (taken === undefined)
      throw new Error(`${claim.fence.conversation} was claimed although it is held or cannot be run`);
    const { begun, unfinished } = model.claim(taken, this.#worker(worker), now + LEASE_MS);
    same('the epoch', claim.fence.epoch, taken.epoch);
    same('the turn begun', claim.turn?.id, begun?.id);
    same('the turn left unfinished', claim.unfinished?.id, unfinished?.id);
    this.#leases.set(`${worker} ${taken.id}`, { fence: claim.fence, counter: 1, last: null });
    if (taken !== conversation) await checkConversation(this.#store(1), taken, now);
  }

  async #begin(conversation: model.Conversation, worker: number): Promise<void> {
    const lease = this.#lease(worker, conversation);
    if (lease === null) return;
    const agents = this.#pick(KNOWN, worker);
    let next: model.Turn | null = null;
    await this.#expect(
      'the next turn',
      () => {
        next = model.nextTurn(conversation, lease.fence.epoch, agents);
        return next?.id;
      },
      async () => (await this.#store(worker).nextTurn(lease.fence, agents))?.turn.id,
    );
    if (next !== null) await this.#beginTurn(conversation, worker, next);
  }

  /** With a live session, the turn is sent in the same commit that begins it. */
  async #beginTurn(conversation: model.Conversation, worker: number, turn: model.Turn): Promise<void> {
    if (turn.state !== 'queued') return;
    const isWarm = conversation.sessions.some(({ agent, state }) => agent === turn.agent && state === 'live');
    const sending = isWarm ? this.#sending(conversation, { ...turn, attempt: turn.attempt + 1 }) : [];
    await this.#commitWrites(conversation, worker, [{ write: 'begin', turn: turn.id }, ...sending]);
  }

  async #renew(worker: number): Promise<readonly model.Conversation[]> {
    const leases = this.#conversations.flatMap((one) => this.#lease(worker, one) ?? []);
    const lost = await this.#store(worker).renew(
      leases.map((lease) => lease.fence),
      LEASE_MS,
    );
    const expected = leases.filter(
      (lease) => !model.held(this.#current({ id: lease.fence.conversation }), lease.fence.epoch),
    );
    same(
      'the leases that are lost',
      lost,
      expected.map((lease) => lease.fence),
    );
    for (const lease of leases) {
      const conversation = this.#current({ id: lease.fence.conversation });
      if (model.held(conversation, lease.fence.epoch)) conversation.expires = this.#clock.time + LEASE_MS;
    }
    return this.#conversations;
  }

  async #release(conversation: model.Conversation, worker: number): Promise<void> {
    const lease = this.#lease(worker, conversation);
    if (lease === null) return;
    await this.#store(worker).release(lease.fence);
    if (model.held(conversation, lease.fence.epoch)) model.release(conversation);
  }

  // ── under the fence ──

  async #commit(conversation: model.Conversation, worker: number, commands: readonly WriteCommand[]): Promise<void> {
    const writes = commands.flatMap((command) => this.#write(conversation, command) ?? []);
    await this.#commitWrites(conversation, worker, writes);
  }

  async #commitWrites(conversation: model.Conversation, worker: number, writes: readonly model.Write[]): Promise<void> {
    const lease = this.#lease(worker, conversation);
    if (lease === null || writes.length === 0) return;
    const { counter } = lease;
    lease.counter += writes.length;
    lease.last = { counter, writes };
    await this.#commitAt(conversation, worker, lease, counter, writes);
  }

  /** Makes the same commit once more, as after a lost reply. */
  async #repeat(conversation: model.Conversation, worker: number): Promise<void> {
    const lease = this.#lease(worker, conversation);
    if (lease?.last) await this.#commitAt(conversation, worker, lease, lease.last.counter, lease.last.writes);
  }

  async #commitAt(
    conversation: model.Conversation,
    worker: number,
    lease: HeldLease,
    counter: number,
    writes: readonly model.Write[],
  ): Promise<void> {
    const others = this.#others(conversation);
    const inStore: StoreWrite[] = writes.map((write) => toStore(write, conversation));
    await this.#expect(
      `commit ${counter} by ${worker}: ${writes.map((write) => write.write).join(', ')}`,
      () => {
        const { after, seq } = model.commit(conversation, others, lease.fence.epoch, counter, writes);
        Object.assign(conversation, after);
        return seq;
      },
      async () => (await this.#store(worker).commit(lease.fence, counter, inStore)).seq,
    );
  }

  /** Does the next step of a well-behaved worker with this conversation. */
  async #advance(worker: number, conversation: model.Conversation): Promise<void> {
    const lease = this.#lease(worker, conversation);
    if (lease === null || !model.held(conversation, lease.fence.epoch)) return this.#claim(conversation, worker, true);
    const turn = model.open(conversation).find((one) => one.state !== 'queued');
    if (turn === undefined) return this.#begin(conversation, worker);
    if (!turn.sent) return this.#commitWrites(conversation, worker, this.#sending(conversation, turn));
    const ref = conversation.sessions.find((one) => one.id === turn.sessionId && one.agent === turn.agent)?.ref ?? null;
    const writes: model.Write[] = [{ write: 'end', turn: turn.id, outcome: 'completed', record: turn.n, ref }];
    if (ref !== null && this.#isUsable(conversation, ref)) {
      writes.unshift({ write: 'change', ref, state: 'dormant', watermark: turn.n });
    }
    return this.#commitWrites(conversation, worker, writes);
  }

  /** A session may become dormant only if it is still usable. */
  #isUsable(conversation: model.Conversation, ref: string): boolean {
    const session = conversation.sessions.find((one) => one.ref === ref);
    return session !== undefined && model.isUsable(session);
  }

  #sending(conversation: model.Conversation, turn: Pick<model.Turn, 'id' | 'agent' | 'attempt'>): model.Write[] {
    const usable = model.byUse(conversation).find((one) => one.agent === turn.agent && model.isUsable(one));
    const receipt = { write: 'receipt', turn: turn.id, attempt: turn.attempt } as const;
    if (usable) return [receipt, { write: 'send', turn: turn.id, ref: usable.ref }];
    const ref = this.#id('ref');
    const session = { ref, id: this.#id('native'), agent: turn.agent, state: 'live', watermark: 0 } as const;
    return [{ write: 'open', session, turn: turn.id }, receipt, { write: 'send', turn: turn.id, ref }];
  }

  /** Resolves the numbers of a write command. Null: what it is about does not exist. */
  #write(conversation: model.Conversation, command: WriteCommand): model.Write | null {
    const begun = model.open(conversation).filter((one) => one.state !== 'queued');
    // Mostly about the running turn; sometimes about any other.
    const among = 'turn' in command && command.turn !== 3 && begun.length > 0 ? begun : conversation.turns;
    const turn = 'turn' in command && command.turn !== null ? this.#maybe(among, command.turn) : null;
    const session =
      'session' in command && command.session !== null ? this.#maybe(conversation.sessions, command.session) : null;
    switch (command.write) {
      case 'open': {
        const watermark = Math.max(0, model.head(conversation) + command.ahead);
        const { state } = command;
        const opened = { ref: this.#id('ref'), id: this.#native(command.id), agent: this.#pick(AGENTS, command.agent) };
        return { write: 'open', session: { ...opened, state, watermark }, turn: turn?.id ?? null };
      }
      case 'change': {
        if (session === null) return null;
        const watermark = Math.max(0, model.head(conversation) + command.ahead);
        return { write: 'change', ref: session.ref, state: command.state, watermark };
      }
      case 'deny': {
        const permission = this.#maybe(conversation.permissions, command.permission);
        return permission && { write: 'deny', permission: permission.id };
      }
      case 'ask':
        return turn && { write: 'ask', turn: turn.id, permission: this.#id('permission') };
      case 'receipt':
        return turn && { write: 'receipt', turn: turn.id, attempt: turn.attempt };
      case 'send':
        return turn && { write: 'send', turn: turn.id, ref: session?.ref ?? null };
      case 'end': {
        if (turn === null) return null;
        const right = turn.wasSent ? turn.n : null;
        const record = { right, none: null, some: turn.n, wrong: turn.n + 1 }[command.record];
        const { outcome, unsent } = command;
        return { write: 'end', turn: turn.id, outcome, record, ref: session?.ref ?? null, unsent };
      }
      default:
        return turn && { write: command.write, turn: turn.id };
    }
  }

  // ── helpers ──

  /** Store and model must return the same, or refuse with the same code. */
  async #expect<T>(what: string, expected: () => T, actual: () => Promise<T>): Promise<void> {
    const left = resultOf(expected);
    const right = await actual().then(
      (value) => ({ value }),
      (error: unknown) => {
        if (!(error instanceof ThroughlineError)) throw error;
        return { refused: error.code };
      },
    );
    this.#note(`${what}: ${JSON.stringify(right)}`);
    same(what, right, left);
  }

  #lease(worker: number, conversation: model.Conversation): HeldLease | null {
    return this.#leases.get(`${worker} ${conversation.id}`) ?? null;
  }

  #current({ id }: { id: string }): model.Conversation {
    return this.#conversations.find((one) => one.id === id) as model.Conversation;
  }

  #store(which: number): Store {
    return this.#pick(this.#stores, which);
  }

  #pick<T>(all: readonly T[], which: number): T {
    return all[which % all.length] as T;
  }

  #maybe<T>(all: readonly T[], which: number): T | null {
    return all.length === 0 ? null : this.#pick(all, which);
  }

  #id(kind: string): string {
    this.#made += 1;
    return `${this.#name} ${kind} ${this.#made}`;
  }

  /** The id of a native session. There are so few that conversations often use the same one. */
  #native(which: number): string {
    return `${this.#name} shared ${which}`;
  }

  #worker(which: number): string {
    return `${this.#name} worker ${which}`;
  }

  #workerInfo(which: number) {
    return { id: this.#worker(which), process: { pid: 1, started: '', boot: '', namespace: '' } };
  }

  #spec(id: string) {
    const pinned = { sandbox: id, cwd: null, place: this.#name, restore: DEFAULT_RESTORE };
    return { id, key: null, title: null, agent: null, driver: 'worker', ...pinned } as const;
  }
}

function resultOf<T>(call: () => T): { value: T } | { refused: string } {
  try {
    return { value: call() };
  } catch (error) {
    if (error instanceof model.Refused) return { refused: error.code };
    throw error;
  }
}
