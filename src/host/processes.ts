import { hostname, totalmem } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatMark, type ProcessIdentity, starterOf, type Viewpoint, whereIs } from '../core/process.ts';
import { Pace } from '../flow/pace.ts';
import type { HostProcesses } from '../ports/processes.ts';
import { systemClock } from './clock.ts';
import { bootsOf } from './place.ts';
import { type Marked, machine, type ProcessEntry, type ProcessTable, procfs, ps } from './process-table.ts';

const END_WAIT_MS = 5_000;
/** How many processes `orphans` looks at in one turn of the event loop. This takes a fraction of a millisecond. */
const AT_ONCE = 8;

type Kill = (pid: number, signal: 'SIGKILL' | 0) => void;

interface HostOptions {
  /** The data home that programs are started for. */
  readonly place?: string;
  readonly kill?: Kill;
  /** Left out: earlier boots are unknown. */
  readonly isOver?: Viewpoint['isOver'];
}

/** Processes as one process table shows them. */
export function processesOf(table: ProcessTable, options: HostOptions = {}): HostProcesses {
  const { place = 'none', kill = (pid, signal) => process.kill(pid, signal), isOver = () => false } = options;
  const seen = lookingAt(table, kill, isOver);
  const marked = markedProcesses(table, kill);

  const isFromHere = (mark: string) => starterOf(mark)?.place === place;

  function isOrphan({ mark }: Marked): boolean {
    const starter = starterOf(mark);
    return starter !== null && seen.status(starter.process) === 'dead';
  }

  return {
    ...seen,
    hasEnded: (child) => !table.isSlow && seen.status(child) === 'dead',
    endMarked: marked.endTogether,
    endMarkedNow: marked.endNow,
    newMark: () => formatMark(uniqueId(), { place, process: seen.self() }),
    async orphans() {
      const found: (ProcessIdentity & Marked)[] = [];
      let looked = 0;
      for (const one of table.marked()) {
        // Before the next pause: the pid may be reused during it.
        const identity = one !== null && isFromHere(one.mark) ? seen.identify(one.pid) : null;
        if (one !== null && identity !== null) found.push({ ...identity, mark: one.mark });
        looked += 1;
        if (looked % AT_ONCE === 0) await new Promise(setImmediate);
      }
      // Once for each mark, after the look: a starter may die meanwhile. It must not count as alive for its program, and as dead for a tool.
      return leadersOf(table, found).filter(isOrphan);
    },
    async end(identity) {
      const before = seen.status(identity);
      if (before === 'unknown') return before;
      const { mark } = identity;
      if (before === 'dead') {
        if (mark !== undefined && identity.boot === table.boot()) await marked.endTogether(mark);
        return 'ended';
      }
      // A record of our own process can only be a mistake.
      if (identity.pid === process.pid) return 'unknown';
      const leadsGroup = table.look(identity.pid)?.group === identity.pid;
      if (signal(kill, leadsGroup ? -identity.pid : identity.pid, 'SIGKILL') === 'forbidden') return 'unknown';
      if (mark !== undefined) await marked.endTogether(mark);
      return (await gone(() => seen.status(identity) === 'dead')) ? 'ended' : 'unknown';
    },
  };
}

/** What a process table shows about single processes. */
function lookingAt(
  table: ProcessTable,
  kill: Kill,
  isOver: Viewpoint['isOver'],
): Pick<HostProcesses, 'identify' | 'status' | 'self'> {
  // These do not change while we run, and reading them costs a system call or even a program.
  let viewpoint: Viewpoint | undefined;
  let self: ProcessIdentity | undefined;
  const here = () => (viewpoint ??= { boot: table.boot(), namespace: table.namespace(), isOver });

  function identify(pid: number): ProcessIdentity | null {
    const entry = table.look(pid);
    return entry && { pid, started: entry.started, boot: here().boot, namespace: here().namespace };
  }

  return {
    identify,
    self() {
      if (self !== undefined) return self;
      const found = identify(process.pid);
      if (found === null) throw new Error('the operating system does not show us our own process');
      self = { ...found, host: hostname() };
      return self;
    },
    status(identity) {
      const where = whereIs(identity, here());
      if (where !== 'here') return where === 'before' ? 'dead' : 'unknown';
      const entry = table.look(identity.pid);
      // /proc may hide other users' processes, and reading it fails when no file descriptor is free. A living owner must never be
      // declared dead, so signal 0 has to confirm that there is no such process.
      if (entry === null) return signal(kill, identity.pid, 0) === 'gone' ? 'dead' : 'unknown';
      return entry.started === identity.started && !entry.zombie ? 'alive' : 'dead';
    },
  };
}

/**
 * One process for each mark: the program itself, which is the oldest, or what it has left. A tool of the program may lead a group of its own,
 * and have a smaller pid. If the tool was ended first, the program would continue with its result.
 */
function leadersOf<P extends ProcessIdentity & Marked>(table: ProcessTable, all: readonly P[]): P[] {
  const leads = ({ pid }: P) => Number(table.look(pid)?.group === pid);
  return [...Map.groupBy(all, ({ mark }) => mark).values()].flatMap(
    (found) => found.toSorted((a, b) => byAge(a, b) || leads(b) - leads(a))[0] ?? [],
  );
}

/** The oldest first. 0: the system does not tell. */
function byAge(a: Pick<ProcessEntry, 'started'>, b: Pick<ProcessEntry, 'started'>): number {
  return Number(a.started) - Number(b.started) || 0;
}

/** With many processes a look takes longer than others may wait for the event loop. */
const pace = new Pace(systemClock.monotonic, setImmediate);

/** Ends the processes that have a mark in their environment. */
function markedProcesses(table: ProcessTable, kill: Kill) {
  /** A killed process starts no others: when a look finds no new process, none is left. */
  function* ending(marks: ReadonlySet<string>): Generator<void, void> {
    const ended = new Set<number>([process.pid]);
    for (let isNew = true; isNew; ) {
      const found: { readonly pid: number; readonly started: string }[] = [];
      for (const one of table.marked()) {
        if (one !== null && marks.has(one.mark) && !ended.has(one.pid))
          found.push({ pid: one.pid, started: table.look(one.pid)?.started ?? '' });
        yield;
      }
      // A program before its tools. A pid may have been reused since the look.
      for (const { pid, started } of found.toSorted(byAge)) {
        ended.add(pid);
        const now = table.look(pid)?.started ?? started;
        if (now === started) signal(kill, pid, 'SIGKILL');
      }
      isNew = found.length > 0;
    }
  }

  const endNow = (mark: string) => void [...ending(new Set([mark]))];

  /** A look at all processes costs the same for one mark as for many, so calls during one look share the next. */
  let gathering: { readonly marks: Set<string>; readonly ended: Promise<void> } | null = null;
  let looking = Promise.resolve();
  function endTogether(mark: string): Promise<void> {
    if (gathering === null) {
      const marks = new Set<string>();
      const ended = looking.then(async () => {
        await pace.next();
        gathering = null;
        await pace.run(ending(marks));
      });
      gathering = { marks, ended };
      looking = ended.catch(() => {});
    }
    gathering.marks.add(mark);
    return gathering.ended;
  }

  return { endNow, endTogether };
}

const thisTable = process.platform === 'linux' ? procfs : ps;

/** This machine's processes, for code that starts no programs. */
export const systemProcesses = processesOf(thisTable);

const atPlaces = new Map<string, HostProcesses>();

/**
 * This machine's processes, for code that starts programs for a data home, or looks for those that are left. `home`: its directory, with
 * the record of earlier boots.
 */
export function processesAt(place: string, home?: string): HostProcesses {
  const key = JSON.stringify([place, home]);
  const known = atPlaces.get(key);
  if (known !== undefined) return known;
  const isOver = home === undefined ? {} : { isOver: bootsOf(home, { boot: bootId(), machine }) };
  const made = processesOf(thisTable, { place, ...isOver });
  atPlaces.set(key, made);
  return made;
}

/** How much memory this process and those that it starts may use: that of the machine, or of its control group. */
export function memoryLimit(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

/** Unique within our process; not a secret. Without node:crypto, which takes 4 ms to load and would delay the start of an agent. */
function uniqueId(): string {
  return process.hrtime.bigint().toString(36) + Math.random().toString(36).slice(1);
}

/** This boot of this machine. */
export function bootId(): string {
  return systemProcesses.self().boot;
}

function signal(kill: Kill, pid: number, name: 'SIGKILL' | 0): 'sent' | 'gone' | 'forbidden' {
  try {
    kill(pid, name);
    return 'sent';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH' ? 'gone' : 'forbidden';
  }
}

async function gone(check: () => boolean): Promise<boolean> {
  const deadline = systemClock.monotonic() + END_WAIT_MS;
  for (let pause = 1; ; pause = Math.min(pause * 2, 50)) {
    if (check()) return true;
    if (systemClock.monotonic() > deadline) return false;
    await sleep(pause);
  }
}
