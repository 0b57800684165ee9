import { open } from '../../../src/index.ts';
import { type AgentName, MORTALS, settingsFor } from '../harness/agents.ts';
import { marked } from '../harness/marked.ts';
import type { Place } from '../harness/place.ts';
import type { Line } from '../harness/program.ts';
import type { Random } from '../harness/random.ts';
import { until } from '../harness/until.ts';
import { Crew, type Post } from './crew.ts';
import { type Request, randomRequest } from './prompts.ts';

interface Accepted {
  readonly name: string;
  readonly turn: string;
  readonly n: number;
}

/** Turns of one conversation that wait or run at the same time. */
const BACKLOG = 2;

/**
 * Runs workers, submitters and followers on one data home, and kills them. It records what was submitted and acknowledged, and what each
 * follower has seen. A process that is started again continues from there.
 */
export class Storm {
  readonly keys: readonly string[];
  readonly crew: Crew;
  readonly accepted = new Map<string, Accepted[]>();
  /** By follower and conversation: the numbers of the events that it saw, in order. */
  readonly seen = new Map<string, Map<string, number[]>>();
  readonly #place: Place;
  readonly #random: Random;
  readonly #agents = new Map<string, AgentName>();
  readonly #unanswered = new Map<string, { request: Request; post: Post }>();
  /** The ids of turns that were seen to end. */
  readonly #ended = new Set<string>();
  #interrupted = false;
  #submitted = 0;
  #events = 0;

  constructor(place: Place, random: Random, conversations: number) {
    this.#place = place;
    this.#random = random;
    this.keys = Array.from({ length: conversations }, (_, i) => `c${i}`);
    for (const [i, key] of this.keys.entries()) {
      this.#agents.set(key, MORTALS[i % MORTALS.length] as AgentName);
      this.accepted.set(key, []);
    }
    this.crew = new Crew(place, random, {
      onStart: (post) => this.#resume(post),
      onLine: (post, line) => this.#hear(post, line),
    });
  }

  async begin(crew: { workers: number; submitters: number; followers: number }): Promise<void> {
    const { opening, mark } = this.#place;
    await using tl = await open({ ...opening, settings: settingsFor(mark), engine: { maxRunning: 0 } });
    // In every third conversation few turns are restored. The receipts must report the dropped ones.
    for (const [i, key] of this.keys.entries()) {
      await tl.engine.ensure({ key, ...(i % 3 === 2 ? { restore: { lastTurns: 3 } } : {}) });
    }
    this.crew.add('worker', crew.workers);
    this.crew.add('submitter', crew.submitters);
    this.crew.add('follower', crew.followers);
  }

  /**
   * Kills processes at random moments while turns are submitted, until this many were killed and a turn was interrupted. The pace depends
   * on the number of events. On a machine that is too busy for the schedule, kills come sooner, and more of them hit a starting process.
   */
  async rage(kills: number, withinMs: number): Promise<void> {
    const started = performance.now();
    for (let done = 0; done < kills || !this.#interrupted; ) {
      /** Over 1: behind the schedule. */
      const lag = done < kills ? (performance.now() - started) / (withinMs * ((done + 1) / kills)) : 0;
      this.#submit();
      // If only the interrupted turn is missing, processes get time to start, so that a kill hits a running turn.
      const patienceMs = done >= kills ? 10_000 : lag > 1 ? 100 : 300;
      await this.#someEvents(this.#random.whole(1, 20), patienceMs);
      if (this.#random.chance(0.1)) this.crew.killAgent();
      if (this.#random.chance(0.03)) this.crew.freeze();
      if (this.crew.kill(this.#random.chance(lag > 1.5 ? 0.8 : lag > 1 ? 0.2 : 0.1))) done += 1;
    }
    await this.crew.recovered();
  }

  /** Waits until every submitted turn has ended and every follower has seen it. */
  async calm(ms: number): Promise<void> {
    const open = () => [...this.accepted.values()].flat().filter(({ turn }) => !this.#ended.has(turn));
    await until('all that was submitted to be accepted', () => this.#unanswered.size === 0, { ms });
    await until('every turn to end', () => open().length === 0, { ms }).catch((error: Error) => {
      throw new Error(`${error.message}; still open: ${open().map(({ name }) => name)}`);
    });
    await until('the followers to see all', () => this.#caughtUp(), { ms });
  }

  /** Runs one more turn in every conversation, to check what each agent knows. */
  async askAll(ms: number): Promise<void> {
    for (const key of this.keys) this.#submitTo(key);
    await this.calm(ms);
  }

  /** Waits until orphans are ended. Then ends the processes that run turns, and waits until followers have seen everything. */
  async end(ms: number): Promise<void> {
    await until('orphans to be ended', () => this.crew.orphans().length === 0, { ms });
    await this.crew.endRunners();
    await until('agents to end with those who ran them', () => marked(this.#place.mark).length === 0, { ms });
    await this.#free(ms);
    await until('the followers to see all', () => this.#caughtUp(), { ms });
  }

  /** A new process frees the leases of the killed ones. Followers may already have begun to do so. */
  async #free(ms: number): Promise<void> {
    const { opening, mark } = this.#place;
    await using _ = await open({ ...opening, settings: settingsFor(mark), engine: { maxRunning: 0 } });
    const none = async () => (await this.#living()).length === 0;
    await until('no session to be recorded as live', none, { ms }).catch(async (error: Error) => {
      throw new Error(`${error.message}; left: ${JSON.stringify(await this.#living())}`);
    });
  }

  async #someEvents(count: number, atMostMs: number): Promise<void> {
    const target = this.#events + count;
    await until('events', () => this.#events >= target, { ms: atMostMs, every: 2 }).catch(() => {});
  }

  // ── input and output of the processes ──

  #resume(post: Post): object {
    if (post.kind === 'submitter') {
      const unanswered = [...this.#unanswered.values()].filter((waiting) => waiting.post === post);
      return { requests: unanswered.map(({ request }) => request) };
    }
    if (post.kind === 'worker') return {};
    const seen = this.seen.get(post.name) ?? new Map<string, number[]>(this.keys.map((key) => [key, []]));
    this.seen.set(post.name, seen);
    return { from: Object.fromEntries([...seen].map(([key, numbers]) => [key, numbers.at(-1) ?? 0])) };
  }

  #hear(post: Post, line: Line): void {
    if (typeof line.accepted === 'string') this.#onAccepted(line.accepted, line);
    if (typeof line.event === 'string') this.#onEvent(post, line.event, line);
  }

  #onAccepted(name: string, line: Line): void {
    const waiting = this.#unanswered.get(name);
    if (!this.#unanswered.delete(name)) return;
    this.accepted.get(waiting?.request.key ?? '')?.push({ name, turn: String(line.turn), n: Number(line.n) });
  }

  #onEvent(post: Post, key: string, line: Line): void {
    this.seen.get(post.name)?.get(key)?.push(Number(line.seq));
    this.#events += 1;
    if (line.kind === 'turn.ended') this.#ended.add(String(line.turn));
    if ((line.end as { outcome?: string } | undefined)?.outcome === 'interrupted') this.#interrupted = true;
  }

  // ── submitting ──

  #submit(): void {
    for (const key of this.keys) {
      const open = (this.accepted.get(key) ?? []).filter(({ turn }) => !this.#ended.has(turn)).length;
      const asked = [...this.#unanswered.values()].filter(({ request }) => request.key === key).length;
      if (open + asked < BACKLOG && this.#random.chance(0.5)) this.#submitTo(key);
    }
  }

  #submitTo(key: string): void {
    this.#submitted += 1;
    const at = { key, agent: this.#agents.get(key) ?? 'plain', name: `${key}-${this.#submitted}` };
    const request = randomRequest(this.#random, { ...at, file: this.#place.effects(key) });
    const submitters = this.crew.of('submitter');
    const post = this.#random.pick(submitters);
    this.#unanswered.set(request.name, { request, post });
    post.program.send(request);
    // Another process submits the same request at the same time. It must still be one turn.
    if (this.#random.chance(0.1)) this.#random.pick(submitters).program.send(request);
  }

  /** The sessions that are recorded as live, with the holders of their conversations. */
  #living(): Promise<object[]> {
    return this.#place.rows(
      `SELECT c.key, s.id, s.process, l.worker, l.pending, l.epoch FROM sessions s
       JOIN conversations c ON c.no = s.conv JOIN leases l ON l.conv = s.conv WHERE s.state = 'live'`,
    );
  }

  async #caughtUp(): Promise<boolean> {
    const counts = await this.#place.rows<{ key: string; last: number }>(
      'SELECT c.key, CAST(max(e.seq) AS int) AS last FROM events e JOIN conversations c ON c.no = e.conv GROUP BY c.no',
    );
    return [...this.seen.values()].every((seen) => counts.every(({ key, last }) => seen.get(key)?.at(-1) === last));
  }
}
