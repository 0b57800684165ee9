import { setTimeout as pause } from 'node:timers/promises';
import { ThroughlineError } from '../../../src/index.ts';
import { type AgentName, settingsFor } from '../../faults/harness/agents.ts';
import { Random } from '../../faults/harness/random.ts';
import { until } from '../../faults/harness/until.ts';
import { Reader } from '../../faults/server/reader.ts';
import { ends } from '../../faults/storm/facts.ts';
import { type Request, randomRequest } from '../../faults/storm/prompts.ts';
import { type Acknowledged, type Facts, ownersApart, violationsOf } from './checks.ts';
import { Client, type Way } from './client.ts';
import { factsOf } from './facts.ts';
import type { Figures, Outcome } from './figures.ts';
import { OWNERS, type World } from './world.ts';

/** How clients reach the server: most by HTTP and the library, some by commands, each of which starts a process. */
const WAYS: readonly Way[] = ['http', 'library', 'http', 'command', 'embedded'];
/** Turns of one client that wait or run at the same time, in one conversation. */
const BACKLOG = 2;
const AGENTS = Object.keys(settingsFor('').agents) as AgentName[];

/** A conversation that clients of one owner use, and its readers. */
interface Talk {
  readonly owner: string;
  readonly key: string;
  readonly agent: string;
  readonly acknowledged: Map<string, Acknowledged>;
  readonly readers: Told[];
}

interface Told {
  readonly reader: string;
  readonly events: { readonly seq: number; readonly text: string }[];
  /** How often it has connected. The library reconnects by itself. */
  readonly connections: () => number;
  readonly cut: () => void;
  readonly close: () => Promise<void>;
}

interface CrowdOptions {
  readonly seed: number;
  readonly clients: number;
  /** The agents of the conversations, in turn. Left out: scripted ones of every kind. */
  readonly agents?: readonly string[];
  /** Agents fail by themselves here. Left out: a turn fails only because its agent was killed. */
  readonly agentsFail?: true;
  /** Makes the requests. Left out: `randomRequest`. */
  readonly request?: (random: Random, at: { key: string; agent: string; name: string; file: string }) => Request;
}

/**
 * Clients of several owners, which submit all the time, and readers, which are cut off. Each client uses its own way to the server, and
 * submits to its own conversation and to one that all clients of the owner share. The crowd records what was acknowledged and which events
 * each reader got.
 */
export class Crowd {
  readonly #world: World;
  readonly #options: CrowdOptions;
  readonly #clients: Client[] = [];
  readonly #talks: Talk[] = [];
  readonly #loops: Promise<void>[] = [];
  readonly #ended = new Set<string>();
  readonly #violations: string[] = [];
  #stopping = false;
  #duplicates = 0;
  #conflicts = 0;

  constructor(world: World, options: CrowdOptions) {
    this.#world = world;
    this.#options = options;
  }

  async begin(): Promise<void> {
    const { clients, agents = AGENTS, seed } = this.#options;
    const begun: (() => Promise<void>)[] = [];
    const talk = (owner: string, key: string): Talk => {
      const known = this.#talks.find((one) => one.owner === owner && one.key === key);
      if (known !== undefined) return known;
      const agent = agents[this.#talks.length % agents.length] ?? 'plain';
      const made: Talk = { owner, key, agent, acknowledged: new Map(), readers: [] };
      this.#talks.push(made);
      return made;
    };
    for (let i = 0; i < clients; i += 1) {
      const owner = OWNERS[i % OWNERS.length] ?? 'ann';
      const client = new Client(this.#world, owner, WAYS[i % WAYS.length] ?? 'http');
      const talks = [talk(owner, `own-${i}`), talk(owner, 'shared')];
      this.#clients.push(client);
      begun.push(() => this.#work(client, talks, new Random(seed + i)));
    }
    for (const { owner, key } of this.#talks) await this.#world.caller(owner).ok('POST', '/conversations', { key });
    for (const one of this.#talks) one.readers.push(this.#httpReader(one));
    const [first] = this.#clients.filter(({ way }) => way === 'library');
    const talks = first === undefined ? [] : this.#talks.filter(({ owner }) => owner === first.owner);
    for (const one of talks) if (first !== undefined) one.readers.push(this.#libraryReader(one, first));
    for (const work of begun) this.#loops.push(work().catch((error) => this.#violated(error)));
  }

  get acknowledged(): number {
    return this.#talks.reduce((sum, { acknowledged }) => sum + acknowledged.size, 0);
  }

  /** Cuts the connection of one of the readers. */
  cut(random: Random): void {
    random.pick(this.#talks.flatMap(({ readers }) => readers)).cut();
  }

  /** Stops submitting, and waits until every turn has ended and every reader has all events. */
  async calm(ms = 120_000): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#loops);
    const open = () => this.#talks.flatMap(({ acknowledged }) => [...acknowledged.values()].filter(this.#isOpen));
    await until('every turn to end', () => open().length === 0, { ms }).catch((error) => this.#violated(error));
    for (const { owner, key, readers } of this.#talks) {
      const { lastSeq } = await this.#world.caller(owner).ok('GET', `/conversations/${key}`);
      const behind = () => readers.some(({ events }) => (events.at(-1)?.seq ?? 0) < lastSeq);
      await until(`the readers of ${key}`, () => !behind()).catch((error) => this.#violated(error));
    }
  }

  /** Ends the readers, clients and the server, and checks everything. */
  async outcome(): Promise<Outcome> {
    const all: Facts[] = [];
    for (const { owner, key, acknowledged, readers } of this.#talks) {
      const shown = await factsOf(this.#world, owner, key);
      all.push({ ...shown, acknowledged: [...acknowledged.values()], told: readers });
      // There may be events after the last turn: a session is closed.
      const behind = () => readers.some(({ events }) => events.length < shown.texts.length);
      await until(`the readers of ${key}`, () => !behind()).catch((error) => this.#violated(error));
    }
    await Promise.all(this.#talks.flatMap(({ readers }) => readers.map(({ close }) => close())));
    const violations = [
      ...this.#violations,
      ...all.flatMap((facts) => violationsOf(facts, this.#options)),
      ...(await this.#apart(all)),
    ];
    for (const { owner, key } of this.#talks) {
      const { broken } = await this.#world.caller(owner).ok('GET', `/conversations/${key}/verify`);
      if (broken !== null) violations.push(`${owner}: verify of ${key}: ${JSON.stringify(broken)}`);
    }
    await Promise.all(this.#clients.map((client) => client.close()));
    violations.push(...(await this.#world.leftOver()));
    return { figures: this.#figures(all), violations };
  }

  #figures(all: readonly Facts[]): Figures {
    const readers = this.#talks.flatMap((talk) => talk.readers);
    const sum = (counts: readonly number[]) => counts.reduce((a, b) => a + b, 0);
    return {
      clients: this.#clients.length,
      'requests acknowledged': this.acknowledged,
      'repeated until then': sum(this.#clients.map(({ repeats }) => repeats)),
      'sent again afterwards': this.#duplicates,
      'sent again with another body': this.#conflicts,
      ...Object.fromEntries(Object.entries(ends(all)).map(([end, count]) => [`turns ${end}`, count])),
      'side effects': sum(all.map(({ ran }) => ran.length)),
      'streams cut': sum(readers.map(({ connections }) => Math.max(0, connections() - 1))),
      'events read': sum(readers.map(({ events }) => events.length)),
      receipts: sum(all.map(({ receipts }) => receipts.length)),
    };
  }

  async #apart(all: readonly Facts[]): Promise<string[]> {
    const violations: string[] = [];
    for (const owner of new Set(all.map((facts) => facts.owner))) {
      const { conversations } = await this.#world.caller(owner).ok('GET', '/conversations?limit=200');
      const own = all.filter((facts) => facts.owner === owner);
      const foreign = all
        .filter((facts) => facts.owner !== owner)
        .flatMap(({ turns }) => turns.map(({ requestId }) => requestId ?? ''));
      const shown = own.flatMap(({ texts, turns }) => [...texts, JSON.stringify(turns)]).join('\n');
      violations.push(
        ...ownersApart(
          owner,
          conversations,
          own.map(({ key }) => key),
          shown,
          foreign,
        ),
      );
    }
    return violations;
  }

  readonly #isOpen = ({ turn }: Acknowledged) => !this.#ended.has(turn);

  #violated(error: unknown): void {
    this.#violations.push(String(error));
  }

  // ── submitting ──

  async #work(client: Client, talks: readonly Talk[], random: Random): Promise<void> {
    const mine = new Map<Talk, Acknowledged[]>(talks.map((talk) => [talk, []]));
    for (let count = 0; !this.#stopping; count += 1) {
      const talk = random.pick(talks);
      const { owner, key, agent } = talk;
      const name = `${owner}-${client.way}-${random.whole(1000, 9999)}-${this.#clients.indexOf(client)}-${count}`;
      const make = this.#options.request ?? (randomRequest as NonNullable<CrowdOptions['request']>);
      const request = make(random, { key, agent, name, file: this.#world.ledger(owner, key) });
      const acknowledged = await client.submit(request);
      talk.acknowledged.set(name, acknowledged);
      mine.get(talk)?.push(acknowledged);
      if (random.chance(0.1)) await this.#again(client, request, acknowledged);
      if (random.chance(0.05)) await this.#otherwise(owner, request);
      const open = () => (mine.get(talk) ?? []).filter(this.#isOpen).length;
      while (open() >= BACKLOG && !this.#stopping) await pause(20);
      await pause(random.whole(0, 100));
    }
  }

  /** The same request once more is the same turn. */
  async #again(client: Client, request: Request, first: Acknowledged): Promise<void> {
    this.#duplicates += 1;
    const again = await client.submit(request);
    if (again.turn !== first.turn) this.#violated(`${request.name} was submitted twice and is two turns`);
  }

  /** The same request id with another body is a conflict. */
  async #otherwise(owner: string, { name, key }: Request): Promise<void> {
    const body = { prompt: 'something else', requestId: name };
    const asked = await this.#world
      .caller(owner)
      .post(`/conversations/${key}/turns`, body)
      .catch(() => null);
    if (asked === null || asked.status === 503 || asked.status === 507) return;
    this.#conflicts += 1;
    if (asked.status !== 409) this.#violated(`${name} with another body was answered with ${asked.status}`);
  }

  // ── reading ──

  #httpReader({ owner, key }: Talk): Told {
    const events: Told['events'] = [];
    const address = `${this.#world.url}/v1/conversations/${key}/events`;
    const headers = { authorization: `Bearer ${this.#world.key(owner)}` };
    const reader = new Reader(address, headers, (event) => this.#heard(events, event));
    return {
      ...{ reader: `${owner}'s HTTP reader`, events, connections: () => reader.connections },
      ...{ cut: () => reader.cut(), close: () => reader.close() },
    };
  }

  /** Follows by the library. Each cut ends the loop, and the next one continues after the last event. */
  #libraryReader({ owner, key }: Talk, client: Client): Told {
    const events: Told['events'] = [];
    let [stopped, connections, connection] = [false, 0, new AbortController()];
    const follow = async () => {
      const { engine } = await client.library();
      connections += 1;
      const options = { after: events.at(-1)?.seq ?? 0, signal: connection.signal };
      for await (const event of engine.follow(key, options)) this.#heard(events, event);
    };
    const done = (async () => {
      while (!stopped) {
        connection = new AbortController();
        await follow().catch((error) => {
          // The conversation does not exist yet, or the server was away for too long.
          const isTemporary =
            error instanceof ThroughlineError && ['not_found', 'unreachable', 'closed'].includes(error.code);
          if (!isTemporary) this.#violated(`the library's reader of ${key}: ${error}`);
        });
        await pause(100);
      }
    })();
    const close = () => {
      stopped = true;
      connection.abort();
      return done;
    };
    return {
      ...{ reader: `${owner}'s reader by the library`, events },
      ...{ connections: () => connections, cut: () => connection.abort(), close },
    };
  }

  #heard(events: Told['events'], event: { seq: number; kind: string; turnId: string | null }): void {
    events.push({ seq: event.seq, text: JSON.stringify(event) });
    if (event.kind === 'turn.ended' && event.turnId !== null) this.#ended.add(event.turnId);
  }
}
