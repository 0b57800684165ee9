import { setTimeout as pause } from 'node:timers/promises';
import { open } from '../../../src/index.ts';
import { AGENTS, type AgentName, settingsFor } from '../harness/agents.ts';
import { marked } from '../harness/marked.ts';
import type { Place } from '../harness/place.ts';
import type { Line, Program } from '../harness/program.ts';
import type { Random } from '../harness/random.ts';
import { until } from '../harness/until.ts';
import { type Request, randomRequest } from './prompts.ts';

/** A process that is started again whenever it was killed. */
interface Post {
  readonly name: string;
  readonly kind: 'worker' | 'submitter' | 'follower';
  program: Program;
  /** It was killed and has not been started again. */
  down: boolean;
}

interface Accepted {
  readonly name: string;
  readonly turn: string;
  readonly n: number;
}

/** What each post is set to: the second submitter runs its own turns, as a command does that finds no server. */
function engineOf({ kind, name }: Post) {
  if (kind === 'worker') return { ...ENGINE, claims: 'all' };
  return name === 'submitter 2' ? { ...ENGINE, claims: 'own', maxWarm: 0 } : { maxRunning: 0 };
}

const ENGINE = { leaseMs: 1_500, maxWarm: 3, idleMs: 400, flushMs: 10, retryMs: 20 };
/** Turns of one conversation that wait or run at the same time. */
const BACKLOG = 2;

/**
 * Workers, submitters and followers on one home, and the one who kills them. It alone remembers: what was submitted and
 * acknowledged, and what each follower has seen. A process that comes back is told where it was.
 */
export class Storm {
  readonly keys: readonly string[];
  readonly accepted = new Map<string, Accepted[]>();
  /** By follower and conversation: the numbers that it saw, in the order in which it did. */
  readonly seen = new Map<string, Map<string, number[]>>();
  kills = 0;
  agentKills = 0;
  freezes = 0;
  readonly #place: Place;
  readonly #random: Random;
  readonly #agents = new Map<string, AgentName>();
  readonly #posts: Post[] = [];
  readonly #unanswered = new Map<string, { request: Request; post: Post }>();
  /** Turns that were seen to end, by id. */
  readonly #ended = new Map<string, string>();
  #submitted = 0;
  readonly #restarts: Promise<void>[] = [];
  readonly #thaws: Promise<void>[] = [];
  #events = 0;

  constructor(place: Place, random: Random, conversations: number) {
    this.#place = place;
    this.#random = random;
    this.keys = Array.from({ length: conversations }, (_, i) => `c${i}`);
    for (const [i, key] of this.keys.entries()) {
      this.#agents.set(key, AGENTS[i % AGENTS.length] as AgentName);
      this.accepted.set(key, []);
    }
  }

  async begin(crew: { workers: number; submitters: number; followers: number }): Promise<void> {
    await using tl = await open({
      home: this.#place.home,
      settings: settingsFor(this.#place.mark),
      engine: { maxRunning: 0 },
    });
    // Every third has a budget so small that turns are left out; the receipts have to say so.
    for (const [i, key] of this.keys.entries()) {
      await tl.engine.ensure({ key, ...(i % 3 === 2 ? { restore: { lastTurns: 3 } } : {}) });
    }
    const kinds = { worker: crew.workers, submitter: crew.submitters, follower: crew.followers };
    for (const [kind, count] of Object.entries(kinds)) {
      for (let i = 0; i < count; i += 1) this.#addPost(kind as Post['kind'], `${kind} ${i + 1}`);
    }
  }

  /**
   * Kills processes at random moments until so many were killed, and lets turns come all the while. The pace is that of the
   * work; on a machine that is too busy to do it within the time, kills come sooner and more of them hit a start.
   */
  async rage(kills: number, withinMs: number): Promise<void> {
    const started = performance.now();
    for (let done = 0; done < kills; ) {
      const late = performance.now() - started > (withinMs * done) / kills;
      this.#submit();
      await this.#someEvents(this.#random.whole(1, 20), late ? 100 : 300);
      if (this.#random.chance(0.1)) this.#killAgent();
      if (this.#random.chance(0.03)) this.#freeze();
      if (this.#kill(this.#random.chance(late ? 0.2 : 0.1))) done += 1;
    }
    await Promise.all([...this.#restarts, ...this.#thaws]);
  }

  /** Waits until every turn that was submitted has ended and every follower has seen it. Nothing is killed any more. */
  async calm(ms: number): Promise<void> {
    const open = () => [...this.accepted.values()].flat().filter(({ turn }) => !this.#ended.has(turn));
    await until('all that was submitted to be accepted', () => this.#unanswered.size === 0, { ms });
    await until('every turn to end', () => open().length === 0, { ms }).catch((error: Error) => {
      throw new Error(`${error.message}; still open: ${open().map(({ name }) => name)}`);
    });
    await until('the followers to see all', () => this.#caughtUp(), { ms });
  }

  /** One more turn in every conversation, to hear what each knows. */
  async askAll(ms: number): Promise<void> {
    for (const key of this.keys) this.#submitTo(key);
    await this.calm(ms);
  }

  /** Processes of agents whose worker is not there any more. */
  orphans(): number[] {
    const ours = this.#posts.map(({ program }) => program.pid);
    return marked(this.#place.mark).flatMap(({ pid, parent }) => (ours.includes(parent) ? [] : [pid]));
  }

  /** Ends all who run turns; what they wrote last is seen by the followers all the same. */
  async endWorkers(ms: number): Promise<void> {
    await Promise.all(this.#posts.flatMap(({ kind, program }) => (kind === 'follower' ? [] : [program.end()])));
    await until('agents to end with their workers', () => marked(this.#place.mark).length === 0, { ms });
    await until('the followers to see all', () => this.#caughtUp(), { ms });
  }

  // ── killing ──

  /** `early`: also one that is just starting. False: there was none to kill. */
  #kill(early: boolean): boolean {
    const kind = this.#random.pick(['worker', 'worker', 'submitter', 'follower'] as const);
    const up = this.#posts.filter(
      (post) => post.kind === kind && !post.down && (early || post.program.lines.length > 0),
    );
    if (up.length === 0) return false;
    const post = this.#random.pick(up);
    post.program.signal('SIGKILL');
    post.down = true;
    this.kills += 1;
    // What it printed before it died is read to the end first: it counts.
    this.#restarts.push(post.program.closed.then(() => this.#start(post)));
    return true;
  }

  /** A worker stands still for a while, mostly for longer than its lease, and goes on as if nothing had happened. */
  #freeze(): void {
    const up = this.#posts.filter(({ kind, down }) => kind === 'worker' && !down);
    if (up.length === 0) return;
    const { program } = this.#random.pick(up);
    program.signal('SIGSTOP');
    this.freezes += 1;
    this.#thaws.push(pause(this.#random.whole(500, 2 * ENGINE.leaseMs)).then(() => program.signal('SIGCONT')));
  }

  /** Not counted: agents die by themselves all the time. */
  #killAgent(): void {
    const agents = marked(this.#place.mark);
    if (agents.length === 0) return;
    try {
      process.kill(this.#random.pick(agents).pid, 'SIGKILL');
      this.agentKills += 1;
    } catch {
      // It has ended by itself.
    }
  }

  async #someEvents(count: number, atMostMs: number): Promise<void> {
    const target = this.#events + count;
    await until('events', () => this.#events >= target, { ms: atMostMs, every: 2 }).catch(() => {});
  }

  // ── processes ──

  #addPost(kind: Post['kind'], name: string): void {
    if (kind === 'follower') this.seen.set(name, new Map(this.keys.map((key) => [key, []])));
    const post = { kind, name, down: true } as unknown as Post;
    this.#posts.push(post);
    this.#start(post);
  }

  #start(post: Post): void {
    const seen = this.seen.get(post.name);
    const from = seen && Object.fromEntries([...seen].map(([key, numbers]) => [key, numbers.at(-1) ?? 0]));
    post.program = this.#place.start(post.kind, { engine: engineOf(post), from }, (line) => this.#hear(post, line));
    post.down = false;
    for (const { request, post: asked } of this.#unanswered.values()) if (asked === post) post.program.send(request);
  }

  #hear(post: Post, line: Line): void {
    if (typeof line.accepted === 'string') this.#onAccepted(line as Line & { accepted: string });
    if (typeof line.event === 'string') this.#onEvent(post, line as Line & { event: string; seq: number });
  }

  #onAccepted(line: Line & { accepted: string }): void {
    const waiting = this.#unanswered.get(line.accepted);
    if (waiting === undefined) return;
    this.#unanswered.delete(line.accepted);
    const accepted = { name: line.accepted, turn: String(line.turn), n: Number(line.n) };
    this.accepted.get(waiting.request.key)?.push(accepted);
  }

  #onEvent(post: Post, line: Line & { event: string; seq: number }): void {
    this.seen.get(post.name)?.get(line.event)?.push(line.seq);
    this.#events += 1;
    if (line.kind === 'turn.ended') this.#ended.set(String(line.turn), line.event);
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
    const submitters = this.#posts.filter(({ kind }) => kind === 'submitter');
    const post = this.#random.pick(submitters);
    this.#unanswered.set(request.name, { request, post });
    post.program.send(request);
    // The same request from another process at the same time: still one turn.
    if (this.#random.chance(0.1)) this.#random.pick(submitters).program.send(request);
  }

  #caughtUp(): boolean {
    const counts = this.#place.rows<{ key: string; last: number }>(
      'SELECT c.key, max(e.seq) AS last FROM events e JOIN conversations c ON c.no = e.conv GROUP BY c.no',
    );
    return [...this.seen.values()].every((seen) => counts.every(({ key, last }) => seen.get(key)?.at(-1) === last));
  }
}
