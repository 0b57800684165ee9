import { randomUUID } from 'node:crypto';
import { lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { asSentence, failureOf, isDamage, RESTORE_HINT, ThroughlineError } from '../core/errors.ts';
import type { HealthReport } from '../core/health.ts';
import { LOSS_CAUSE, lossInWords, lostInWords } from '../core/loss.ts';
import type { SandboxProcess } from '../core/process.ts';
import type { SessionState } from '../core/restore/session.ts';
import { isOwnSandbox, PROBE } from '../core/sandbox/sandbox-id.ts';
import {
  continuable,
  isHeld,
  isTakenBy,
  isThere,
  runsAt,
  runsOnlyAt,
  type Standing,
  whyStranded,
} from '../core/turn/standing.ts';
import type { Finding } from '../ports/doctor.ts';
import type { Processes } from '../ports/processes.ts';
import type { Sandboxes } from '../ports/sandbox.ts';
import type { Census, CensusSession } from '../ports/store/census.ts';
import type { SessionChange } from '../ports/store/sessions.ts';
import type { Store } from '../ports/store.ts';

/** What the checks look at; put together in `compose.ts`. */
export interface DoctorParts {
  readonly store: Store;
  readonly processes: Processes;
  readonly place: string;
  readonly sandboxes: Pick<Sandboxes, 'list' | 'find' | 'remove' | 'status' | 'end' | 'orphans'> & {
    readonly root: string;
    /** The root is inside the data home; elsewhere, other data homes may have sandboxes there, too. */
    readonly isOurs: boolean;
    /** Whether sandboxes are made on this machine now; some of before may be here in any case. */
    readonly areHere: boolean;
    /** Where orphaned sandboxes are moved to. */
    readonly aside: string;
    /**
     * Deletes one on another machine. Throws `conflict` while it is used, and `refused` when unsaved work is in it. `check` is called right before,
     * and throws to keep it.
     */
    removeLeftOver(id: string, check: () => Promise<void>): Promise<void>;
  };
  /** What the running server says of itself; null: none runs. */
  serverHealth(): Promise<HealthReport | null>;
  /** Folders of restores that were killed. `list`: null when some of them may be in use. */
  readonly restoreFolders: { list(): string[] | null; remove(folder: string): void };
  /** Ends what provably dead workers left running, and frees their leases. */
  reap(): Promise<unknown>;
  /** Whether the agent can open its sessions again; null: it is not configured here, or not available. */
  reopens(agent: string): Promise<boolean | null>;
  /** The names of the agents that are configured here. */
  agentNames(): Promise<ReadonlySet<string>>;
  /** Ends a turn that a dead process left in the middle. Throws `conflict` when that cannot be done now. */
  endLeft(owner: string, turn: string): Promise<void>;
}

type Check = (parts: DoctorParts, census: Census) => Promise<Finding[]>;

/**
 * A new check is one function below and one entry here. The order is the one to repair in: a dead holder is cleared first,
 * and then what it held is found to be free.
 */
const CHECKS: readonly Check[] = [
  checkServer,
  checkLosses,
  checkLeases,
  checkTurns,
  checkPlaces,
  checkTasks,
  checkProcesses,
  checkSessions,
  checkSandboxes,
  checkElsewhere,
  checkProbes,
  checkErased,
  checkRestores,
];

/** Looks for what crashes have left over. Changes nothing; `repair` of a finding does. */
export async function examine(parts: DoctorParts): Promise<Finding[]> {
  const damage = await checkFile(parts);
  try {
    const findings: Finding[] = [];
    const census = await parts.store.census();
    for (const check of CHECKS) findings.push(...(await check(parts, census)));
    return [...damage, ...findings];
  } catch (error) {
    // What cannot be read cannot be checked, and that is the first thing to mend.
    if (damage.length > 0 && isDamage(error)) return [...damage, ...(await checkServer(parts))];
    throw error;
  }
}

/** The storage's own check, and the conversations that a person loses by what it found. */
async function checkFile({ store }: DoctorParts): Promise<Finding[]> {
  const { faults, damaged } = await store.inspect();
  const [first] = faults;
  if (first === undefined) return [];
  const found = { check: 'file', remedy: null, repair: async () => {} };
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : '';
  const conversations = damaged.map(({ owner, id, key }) => ({
    ...found,
    subject: `conversation ${key ?? id}${owner === '' || owner === 'local' ? '' : ` of ${owner}`}`,
    problem:
      'A part of what is stored of it is damaged. It may not be possible to read or continue it; the others go on.',
  }));
  const problem = `It is damaged: ${first}${more}. ${RESTORE_HINT} Without one, export what can still be read.`;
  return [{ ...found, subject: 'database', problem }, ...conversations];
}

/** The data itself cannot be opened, so nothing else can be examined. */
export function unopened({ message, hint = '', cause }: ThroughlineError): Finding {
  // SQLite says what is wrong, and our own message only that something is.
  const why =
    cause instanceof Error ? `It is damaged, and cannot be opened: ${asSentence(cause.message)} ${RESTORE_HINT}` : null;
  const problem = why ?? `${message} ${hint}`.trim();
  return { check: 'file', subject: 'database', problem, remedy: null, repair: async () => {} };
}

/** What does not work in the running server. It takes a reason back when the cause is gone. */
async function checkServer({ serverHealth }: DoctorParts): Promise<Finding[]> {
  const reasons = await serverHealth().then(
    (health) => health?.reasons ?? [],
    (error: unknown) => {
      if (error instanceof ThroughlineError) return [failureOf(error)];
      throw error;
    },
  );
  // Of what is missing, `checkLosses` says more.
  const others = reasons.filter(({ code }) => code !== 'storage_lost');
  return others.map(({ code, message, hint = '' }) => ({
    check: 'server',
    subject: `running server, ${code}`,
    problem: `${message} ${hint}`.trim(),
    remedy: null,
    repair: async () => {},
  }));
}

/** Stored data that is missing. Nothing brings it back here, so a person decides. */
async function checkLosses({ store }: DoctorParts): Promise<Finding[]> {
  const found = {
    check: 'losses',
    remedy: 'Accept it: it is no longer reported.',
    repairedBy: '--accept-loss',
    repair: () => store.acceptLosses(),
  } as const;
  return (await store.losses()).flatMap((loss) => [
    {
      ...found,
      subject: `data, ${new Date(loss.noticedAt).toISOString()}`,
      problem: `${lossInWords(loss)} ${LOSS_CAUSE} Restore a backup that has it, if there is one.`,
    },
    ...loss.conversations.map((lost) => ({
      ...found,
      subject: `conversation ${lost.key ?? lost.conversationId}`,
      problem: lostInWords(lost),
    })),
  ]);
}

/** Leases of processes that are provably dead. Whoever needs one can take it; until then it looks taken. */
async function checkLeases({ store, processes, reap }: DoctorParts): Promise<Finding[]> {
  const dead = (await store.workers()).filter(({ process }) => processes.status(process) === 'dead');
  return dead.map(({ id, process }) => ({
    check: 'leases',
    subject: `worker ${id}`,
    problem: `Process ${process.pid} has ended and still holds conversations.`,
    remedy: 'End what it left running, and free its conversations.',
    repair: async () => {
      await reap();
    },
  }));
}

/** Open turns that nobody runs: those that a dead process left in the middle can be ended, the others need a process. */
async function checkTurns(parts: DoctorParts, { standings }: Census): Promise<Finding[]> {
  const { store, processes, place, endLeft } = parts;
  const unheld = standings.filter((standing) => !isHeld(standing, processes.status));
  if (unheld.length === 0) return [];
  const [takers, names] = await Promise.all([store.takers(), parts.agentNames()]);
  return unheld.flatMap((standing): Finding[] => {
    const { owner, turn, conversation, key } = standing;
    const here = runsAt(standing.place, place);
    const known = names.has(turn.agent);
    const taken = isTakenBy(standing, takers, processes.status);
    const why = whyStranded(standing, { held: false, taken, here, known });
    if (why === null) return [];
    const found = { check: 'turns', subject: `turn ${turn.n} of conversation ${key ?? conversation}` };
    if (why.reason !== 'no_process' || turn.state === 'queued') {
      return [{ ...found, problem: `${why.message} ${why.hint}`, remedy: null, repair: async () => {} }];
    }
    const problem = `It is ${turn.state}, but ${whatBecameOf(standing.holder, processes)}.`;
    const remedy = 'End what is left of it, and record what is known of the turn.';
    return [{ ...found, problem, remedy, repair: () => endLeft(owner, turn.id) }];
  });
}

/** Conversations that nobody can continue where they are. A person decides: start a server there, fork them, or move them. */
async function checkPlaces({ store, processes, place }: DoctorParts, { places }: Census): Promise<Finding[]> {
  const away = places.filter((one) => one.place !== place);
  const takers = away.length === 0 ? [] : await store.takers();
  const isServed = (one: string) => takers.some((taker) => taker.place === one && isThere(taker, processes.status));
  return away
    .filter((one) => !isServed(one.place))
    .map(({ place: other, name, conversations }) => {
      const { message, hint } = continuable(runsOnlyAt(`Each of ${conversations} conversations`, name, other));
      const found = { check: 'places', subject: `place ${name ?? other}`, remedy: null, isNote: true };
      return { ...found, problem: `${message} ${hint}`, repair: async () => {} };
    });
}

function whatBecameOf(holder: Standing['holder'], processes: Processes): string {
  if (holder === null || processes.status(holder.process) === 'dead') return 'the process that ran it has ended';
  const { pid, host } = holder.process;
  const who = `process ${pid}${host === undefined ? '' : ` of ${host}`}`;
  return `${who}, on another machine or in another container, has not renewed its lease`;
}

/** Tasks whose runner is dead, and tasks that wait for a task that will not be done. */
async function checkTasks({ store, processes }: DoctorParts, census: Census): Promise<Finding[]> {
  const dead = (await store.tasks.holders()).filter(({ process }) => processes.status(process) === 'dead');
  const held = dead.map(({ id, process }) => ({
    check: 'tasks',
    subject: `runner ${id}`,
    problem: `Process ${process.pid} has ended and still holds tasks.`,
    remedy: 'Queue its tasks again; a server or "throughline task run" continues them.',
    repair: () => store.tasks.forgetHolder(id),
  }));
  const blocked = census.tasks
    .filter(({ state, blockedBy }) => state === 'waiting' && blockedBy.length > 0)
    .map(({ id, blockedBy }) => ({
      check: 'tasks',
      subject: `task ${id}`,
      problem: `It waits for ${blockedBy.join(', ')}, which failed or was cancelled. Retry that task, or cancel this one.`,
      remedy: null,
      repair: async () => {},
    }));
  return [...held, ...blocked];
}

/** Programs that still run although nobody is left to read their output: agents, gates, and whatever nobody could record. */
async function checkProcesses({ sandboxes }: DoctorParts, { sessions, tasks }: Census): Promise<Finding[]> {
  const left = (process: SandboxProcess, problem: string): Finding => ({
    check: 'processes',
    subject: process.label,
    problem,
    remedy: 'End it, with everything that it started.',
    repair: async () => {
      await sandboxes.end(process);
    },
  });
  const orphan = async (process: SandboxProcess | null, what: string): Promise<Finding[]> => {
    if (process === null || (await sandboxes.status(process)) !== 'alive') return [];
    return [left(process, `It is ${what}, and no worker holds it any more.`)];
  };
  const agents = sessions
    .filter(({ held }) => !held)
    .map(({ process, agent, conversation }) => orphan(process, `${agent} in conversation ${conversation}`));
  const gates = tasks
    .filter(({ state }) => state !== 'running')
    .map(({ gate, id }) => orphan(gate, `the gate of task ${id}`));
  const recorded = (await Promise.all([...agents, ...gates])).flat();
  const subjects = new Set(recorded.map(({ subject }) => subject));
  const others = (await sandboxes.orphans())
    .map((process) => left(process, 'The process of this data home that started it has ended.'))
    .filter(({ subject }) => !subjects.has(subject));
  return [...recorded, ...others];
}

/**
 * Sessions recorded as live without a process: a worker could not record their end. Sessions with an open turn are left to the worker
 * that ends that turn.
 */
async function checkSessions(parts: DoctorParts, { sessions }: Census): Promise<Finding[]> {
  const orphaned: CensusSession[] = [];
  for (const session of sessions) {
    const { state, held, open, process } = session;
    if (state !== 'live' || held || open > 0) continue;
    if (process === null || (await parts.sandboxes.status(process)) === 'dead') orphaned.push(session);
  }
  return Promise.all(
    orphaned.map(async (session) => {
      const { problem, remedy, state } = remedyFor(session, await parts.reopens(session.agent));
      return {
        check: 'sessions',
        subject: `session ${session.id} of conversation ${session.conversation}`,
        problem,
        remedy,
        repair: () => change(parts, session, { state, process: null }),
      };
    }),
  );
}

/** `reopens`: whether the agent can open its sessions again; null: it is not known. */
export function remedyFor(
  { turns, newest, agent }: Pick<CensusSession, 'turns' | 'newest' | 'agent'>,
  reopens: boolean | null,
): { problem: string; remedy: string; state: SessionState } {
  const problem = 'It is recorded as live, but has no process.';
  if (turns === 0) {
    // It was named before its first prompt, and its agent may not know it.
    const unused = 'It is recorded as live, but no turn ever ran in it.';
    return { problem: unused, remedy: 'Close the record: the next turn starts a new session.', state: 'closed' };
  }
  if (!newest) {
    return { problem, remedy: 'Close the record: the conversation uses a newer session.', state: 'closed' };
  }
  if (reopens === true) return { problem, remedy: 'Record it as dormant: the next turn resumes it.', state: 'dormant' };
  if (reopens === null) {
    const remedy = `Record it as dormant: the next turn resumes it, if ${agent} is available then and can.`;
    return { problem, remedy, state: 'dormant' };
  }
  const remedy = `Record it as lost: ${agent} cannot open it again. The next turn starts a new session with the history.`;
  return { problem, remedy, state: 'lost' };
}

const LEASE_MS = 10_000;

/** Under the conversation's lease, like everything that is written about a session. */
async function change(
  { store, processes, place }: DoctorParts,
  session: CensusSession,
  change: SessionChange,
): Promise<void> {
  const claim = await store.claim({
    worker: { id: randomUUID(), process: processes.self() },
    place,
    agents: [], // none: a turn that was queued meanwhile is not ours to run
    driver: 'worker',
    leaseMs: LEASE_MS,
    conversation: session.conversation,
  });
  if (claim === null) throw new ThroughlineError('conflict', 'Another process holds the conversation now.');
  try {
    const reason = 'found without a process by the doctor';
    await store.commit(claim.fence, 1, [{ write: 'change-session', ref: session.ref, change, reason }]);
  } finally {
    await store.release(claim.fence);
  }
}

/** Ids of conversations, perhaps as worktrees, and hashes of the names of shared sandboxes. Other files there are not ours. */
const OURS = /^(?:(?:tree-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})$/;

/**
 * Those of these sandboxes that no conversation has. The store is asked after the sandboxes were listed: a conversation is stored before
 * its sandbox is made, so that of a new one is not taken for left over.
 */
async function leftOver({ store }: DoctorParts, ids: readonly string[]): Promise<string[]> {
  const known = new Set((await store.census()).sandboxes);
  return ids.filter((id) => OURS.test(id) && !known.has(id));
}

/** For repairs: a conversation may have taken the name of a shared sandbox since. Throws `conflict` then. */
async function checkLeftOver(parts: DoctorParts, id: string): Promise<void> {
  if ((await leftOver(parts, [id])).length > 0) return;
  throw new ThroughlineError('conflict', 'A conversation has it by now.');
}

/** Directories of conversations that are not in the store. They may hold work, so they are moved and never deleted. */
async function checkSandboxes(parts: DoctorParts): Promise<Finding[]> {
  const { root, isOurs, aside } = parts.sandboxes;
  const orphaned = await leftOver(parts, await namesIn(root));
  return orphaned.map((name) => ({
    check: 'sandboxes',
    subject: `directory ${join(root, name)}`,
    problem: isOurs
      ? 'It belongs to no conversation.'
      : 'It belongs to no conversation here; it may belong to one of another data home.',
    remedy: isOurs ? `Move it to ${aside}.` : null,
    repair: async () => {
      await checkLeftOver(parts, name);
      await moveAside(join(root, name), aside, name);
    },
  }));
}

/** The same on other machines. Nothing can be moved there, and other data homes may have sandboxes there: a person decides. */
async function checkElsewhere(parts: DoctorParts): Promise<Finding[]> {
  const { sandboxes } = parts;
  if (sandboxes.areHere) return [];
  const found = { check: 'sandboxes', isNote: true };
  try {
    const { root, ids } = await sandboxes.list();
    return (await leftOver(parts, ids)).map((id) => ({
      ...{ ...found, subject: `sandbox ${id} in ${root}`, repairedBy: '--delete-left-over' as const },
      problem: 'It belongs to no conversation here; it may belong to one of another data home.',
      remedy: 'Delete it, unless programs run in it or unsaved work is in it.',
      repair: () => sandboxes.removeLeftOver(id, () => checkLeftOver(parts, id)),
    }));
  } catch (error) {
    if (!(error instanceof ThroughlineError)) throw error;
    const problem = `Whether some are left over is unknown: ${error.message} ${error.hint ?? ''}`.trim();
    const unknown = { subject: 'sandboxes on other machines', problem, remedy: null, repair: async () => {} };
    return [{ ...found, ...unknown }];
  }
}

/** No look at an agent takes so long. */
const OLD_MS = 86_400_000;

/** Folders of looks at agents that were killed. Nobody had anything in them. */
async function checkProbes({ sandboxes }: DoctorParts): Promise<Finding[]> {
  const { root, isOurs } = sandboxes;
  if (!isOurs) return [];
  const probes = (await namesIn(root)).filter((name) => name.startsWith(PROBE)).map((name) => join(root, name));
  const ages = await Promise.all(probes.map(async (path) => ({ path, found: await lstat(path).catch(() => null) })));
  const old = ages.filter(({ found }) => found !== null && Date.now() - found.mtimeMs > OLD_MS);
  return old.map(({ path }) => ({
    check: 'sandboxes',
    subject: `directory ${path}`,
    problem: 'It was made for a look at an agent, which was killed.',
    remedy: 'Delete it.',
    repair: () => rm(path, { recursive: true, force: true, maxRetries: 3 }),
  }));
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
}

/**
 * What agents wrote for conversations that were erased. It is deleted only where the erasure was to delete it and did not come to
 * its end; the rest was left on purpose, and a person is told of it.
 */
async function checkErased({ store, sandboxes }: DoctorParts, { erased }: Census): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { owner, conversation, sandbox, toDelete } of erased) {
    const path = await sandboxes.find(sandbox).catch((error: unknown) => {
      // It is on another machine, which cannot be reached now.
      if (!(error instanceof ThroughlineError && error.code === 'agent_unavailable')) throw error;
      findings.push({
        ...{ check: 'erased', subject: `sandbox ${sandbox}`, remedy: null, isNote: true },
        problem: `The conversation ${conversation} was erased. Whether its sandbox is still there is unknown: ${error.message}`,
        repair: async () => {},
      });
      return null;
    });
    // Several that are erased may have shared one.
    if (path === null || findings.some(({ subject }) => subject === `directory ${path}`)) continue;
    const as = owner === 'local' ? '' : ` --as ${owner}`;
    const how = isOwnSandbox(sandbox, conversation)
      ? `"throughline erase ${conversation} --sandbox --yes${as}" deletes it.`
      : 'It had a name and was shared; delete it by hand.';
    const found = { check: 'erased', subject: `directory ${path}` };
    if (toDelete) {
      findings.push({
        ...found,
        problem: `It was to be deleted with the conversation ${conversation}, and is still there.`,
        remedy: 'Delete it.',
        repair: async () => {
          await store.eraseConversation(owner, conversation, { sandbox: path }); // refused when somebody works in it by now
          await sandboxes.remove(sandbox);
        },
      });
    } else {
      const problem = `The conversation ${conversation} was erased. What its agents wrote is still here. ${how}`;
      findings.push({ ...found, problem, remedy: null, isNote: true, repair: async () => {} });
    }
  }
  return findings;
}

/** What is left of a restore that was killed: a copy of the backup. The data was not changed, or was replaced completely. */
async function checkRestores({ restoreFolders }: DoctorParts): Promise<Finding[]> {
  return (restoreFolders.list() ?? []).map((folder) => ({
    check: 'restores',
    subject: `directory ${folder}`,
    problem: 'A restore was killed and left it. It holds a copy of what was to be restored.',
    remedy: 'Delete it.',
    repair: async () => restoreFolders.remove(folder),
  }));
}

async function moveAside(path: string, aside: string, name: string): Promise<void> {
  try {
    await mkdir(aside, { recursive: true, mode: 0o700 });
    await rename(path, await unusedName(join(aside, name)));
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = code === 'EXDEV' ? 'it is on another file system' : message;
    throw new ThroughlineError('refused', `Cannot move it there: ${why}. Move it by hand.`, { cause });
  }
}

/** A directory of that name may have been moved there before, and is kept. */
async function unusedName(path: string): Promise<string> {
  for (let n = 1; ; n += 1) {
    const name = n === 1 ? path : `${path}.${n}`;
    if ((await lstat(name).catch(() => null)) === null) return name;
  }
}
