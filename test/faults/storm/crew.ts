import { setTimeout as pause } from 'node:timers/promises';
import { marked } from '../harness/marked.ts';
import type { Place } from '../harness/place.ts';
import type { Line, Program } from '../harness/program.ts';
import type { Random } from '../harness/random.ts';

/** A process that is started again whenever it was killed. */
export interface Post {
  readonly name: string;
  readonly kind: 'worker' | 'submitter' | 'follower';
  program: Program;
  /** It was killed and has not been started again. */
  down: boolean;
}

const ENGINE = { leaseMs: 1_500, maxWarm: 3, idleMs: 400, flushMs: 10, retryMs: 20 };

/** The settings of each post. The second submitter runs its own turns, as a command without a server does. */
function engineOf({ kind, name }: Post) {
  if (kind === 'worker') return { ...ENGINE, claims: 'all' };
  return name === 'submitter 2' ? { ...ENGINE, claims: 'own', maxWarm: 0 } : { maxRunning: 0 };
}

/** All processes of a storm, and the ways to kill and freeze them. */
export class Crew {
  kills = 0;
  agentKills = 0;
  freezes = 0;
  readonly posts: Post[] = [];
  readonly #place: Place;
  readonly #random: Random;
  readonly #onStart: (post: Post) => object;
  readonly #onLine: (post: Post, line: Line) => void;
  readonly #recovering: Promise<void>[] = [];

  /** `onStart` returns the input of a process, each time it is started. */
  constructor(
    place: Place,
    random: Random,
    { onStart, onLine }: { onStart: (post: Post) => object; onLine: (post: Post, line: Line) => void },
  ) {
    this.#place = place;
    this.#random = random;
    this.#onStart = onStart;
    this.#onLine = onLine;
  }

  add(kind: Post['kind'], count: number): void {
    for (let i = 1; i <= count; i += 1) {
      const post = { kind, name: `${kind} ${i}` } as Post;
      this.posts.push(post);
      this.#start(post);
    }
  }

  of(kind: Post['kind']): Post[] {
    return this.posts.filter((post) => post.kind === kind);
  }

  /** Kills one process. `early`: also one that is starting. False: there was none to kill. */
  kill(early: boolean): boolean {
    const kind = this.#random.pick(['worker', 'worker', 'submitter', 'follower'] as const);
    const up = this.of(kind).filter(({ down, program }) => !down && (early || program.lines.length > 0));
    if (up.length === 0) return false;
    const post = this.#random.pick(up);
    post.program.signal('SIGKILL');
    post.down = true;
    this.kills += 1;
    // Started again only after all of its output was read.
    this.#recovering.push(post.program.closed.then(() => this.#start(post)));
    return true;
  }

  /** Kills an agent. This does not count as a kill of the storm. */
  killAgent(): void {
    const agents = marked(this.#place.mark);
    if (agents.length === 0) return;
    try {
      process.kill(this.#random.pick(agents).pid, 'SIGKILL');
      this.agentKills += 1;
    } catch {
      // It has ended by itself.
    }
  }

  /** Freezes a worker for a while, mostly for longer than its lease, and lets it continue. */
  freeze(): void {
    const up = this.of('worker').filter(({ down }) => !down);
    if (up.length === 0) return;
    const { program } = this.#random.pick(up);
    program.signal('SIGSTOP');
    this.freezes += 1;
    this.#recovering.push(pause(this.#random.whole(500, 2 * ENGINE.leaseMs)).then(() => program.signal('SIGCONT')));
  }

  /** Resolves when all killed processes are started again, and all frozen ones continue. */
  async recovered(): Promise<void> {
    await Promise.all(this.#recovering);
  }

  /** Agents whose parent is none of the current processes. */
  orphans(): number[] {
    const ours = this.posts.map(({ program }) => program.pid);
    return marked(this.#place.mark).flatMap(({ pid, parent }) => (ours.includes(parent) ? [] : [pid]));
  }

  /** Ends all processes that run turns. */
  async endRunners(): Promise<void> {
    await Promise.all([...this.of('worker'), ...this.of('submitter')].map(({ program }) => program.end()));
  }

  #start(post: Post): void {
    const input = { engine: engineOf(post), ...this.#onStart(post) };
    post.program = this.#place.start(post.kind, input, (line) => this.#onLine(post, line));
    post.down = false;
  }
}
