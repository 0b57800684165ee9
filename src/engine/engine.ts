import { checkKeep, type Keep } from '../core/changes.ts';
import {
  type Arrangement,
  type Conversation,
  checkArrangement,
  checkFilter,
  checkUnfiltered,
} from '../core/conversation.ts';
import {
  hasCode,
  isDamage,
  noSuchConversation,
  noSuchPermission,
  noSuchTurn,
  ThroughlineError,
} from '../core/errors.ts';
import { checkEventNumber, checkHead } from '../core/event.ts';
import {
  checkAfter,
  checkBefore,
  checkDirectories,
  checkLimit,
  checkMatch,
  checkRange,
  checkText,
  checkTurnNumber,
  checkTurnSpan,
  given,
} from '../core/input/arguments.ts';
import { type Actor, actor, checkAgent, checkName } from '../core/input/names.ts';
import { checkUsagePage } from '../core/input/usage-page.ts';
import { LOST_WHOLE } from '../core/loss.ts';
import { type PublicConversation, toPublicConversation, toPublicSummary } from '../core/public/conversation.ts';
import { toPublicEvent } from '../core/public/event.ts';
import { type PublicReceipt, toPublicReceipt, toPublicSessions } from '../core/public/session.ts';
import { type PublicTurn, toPublicPermission, toPublicTurn } from '../core/public/turn.ts';
import { parseTurnRestore, type TurnRestore } from '../core/restore/restore-settings.ts';
import { isWorktree } from '../core/sandbox/sandbox-id.ts';
import { checkAnsweredFrom, type Permission } from '../core/turn/permission.ts';
import { type Hindrance, NO_HINDRANCE, runsAt } from '../core/turn/standing.ts';
import { hasEnded, type Turn } from '../core/turn/turn.ts';
import type { EngineSandboxes } from '../ports/engine/sandboxes.ts';
import type {
  AnswerOptions,
  Bounded,
  ConversationSpec,
  DirectoryOptions,
  Engine,
  Erased,
  EraseOptions,
  EventPage,
  FollowOptions,
  ForkOptions,
  ImportOptions,
  ListOptions,
  PendingPage,
  PendingTurn,
  PermissionAnswer,
  PermissionFilter,
  QueuePage,
  QueueTurn,
  SubmitOptions,
  Submitted,
  ToldOptions,
  TurnPage,
} from '../ports/engine.ts';
import type { Enqueued } from '../ports/store/turns.ts';
import { EarlyStart } from './early-start.ts';
import { AgentList } from './intake/agents.ts';
import { ensureConversation, findConversation, forkConversation } from './intake/conversations.ts';
import { erase } from './intake/erase.ts';
import { exportConversation, importConversation } from './intake/portable.ts';
import { requeue, retry, submit } from './intake/submit.ts';
import { type EngineParts, LONGEST_TIMER_MS } from './parts.ts';
import { Attendance, type Refreshed } from './reading/attendance.ts';
import { Changes } from './reading/changes.ts';
import { follow } from './reading/follow.ts';
import { hints } from './reading/hints.ts';
import { SizeLimit } from './reading/size-limit.ts';
import {
  answerOf,
  conversationsOfSession,
  readEnded,
  search,
  showConversation,
  toldOf,
  turnsWithReplies,
} from './reading/views.ts';
import { IdleSandboxes } from './sandboxes/idle.ts';
import { sandboxesOf } from './sandboxes/sandboxes.ts';
import { kill } from './worker/kill.ts';
import { warm } from './worker/warm.ts';
import { Worker } from './worker/worker.ts';

/** Puts the engine together and starts its worker. */
export function createEngine(given: EngineParts, owner: string): Engine {
  // A process that keeps nothing warm is a command. It sends one prompt, and its agent does not run yet.
  const earlyStart = given.settings.maxWarm === 0 ? new EarlyStart(given.sandboxes) : null;
  const parts = earlyStart === null ? given : { ...given, sandboxes: earlyStart.sandboxes };
  const changes = new Changes(parts.store, parts.settings.pollMs);
  const worker = new Worker(parts);
  const idle = new IdleSandboxes(parts, worker);
  let closing: Promise<void> | null = null;
  const close = (graceMs: number) => {
    closing ??= Promise.all([worker.close(graceMs), idle.close(), earlyStart?.end()])
      .then(() => {})
      .finally(async () => {
        changes.close();
        await parts.store.close();
      });
    return closing;
  };
  const attendance = new Attendance(parts, worker);
  const agents = new AgentList(parts);
  return new EmbeddedEngine({ parts, earlyStart, changes, worker, attendance, agents, close }, actor(owner));
}

interface Machinery {
  readonly parts: EngineParts;
  /** Null: agents may run for longer than one prompt. */
  readonly earlyStart: EarlyStart | null;
  readonly changes: Changes;
  readonly worker: Worker;
  readonly attendance: Attendance;
  readonly agents: AgentList;
  readonly close: (graceMs: number) => Promise<void>;
}

class EmbeddedEngine implements Engine {
  readonly owner: string;
  readonly #actor: Actor;
  readonly #machinery: Machinery;

  constructor(machinery: Machinery, actor: Actor) {
    this.#machinery = machinery;
    this.owner = actor.owner;
    this.#actor = actor;
  }

  as(owner: string, by?: string): Engine {
    return new EmbeddedEngine(this.#machinery, actor(owner, by));
  }

  get sandboxes(): EngineSandboxes {
    return sandboxesOf(this.#parts, this.#machinery.worker, this.#actor);
  }

  get #parts(): EngineParts {
    return this.#machinery.parts;
  }

  get #store() {
    return this.#parts.store;
  }

  // ── conversations ──

  async ensure(spec: ConversationSpec): Promise<PublicConversation> {
    return this.#shown(await ensureConversation(this.#parts, this.owner, spec));
  }

  async conversation(idOrKey: string): Promise<PublicConversation> {
    return this.#shown(await this.#find(idOrKey));
  }

  async list({ session, before, ...options }: ListOptions = {}): Promise<PublicConversation[]> {
    const limit = checkLimit(options.limit, 50);
    const page = { ...checkFilter(options), ...given({ before }), limit };
    if (session !== undefined) checkUnfiltered('session', options);
    const read = async () =>
      session === undefined
        ? this.#store.listConversations(this.owner, page)
        : conversationsOfSession(this.#store, this.owner, checkText(session, 'session id'), limit);
    const { found, hindered } = await this.#refreshedPage(read, ({ id, open }) => (open > 0 ? id : null));
    const unserved = await this.#machinery.attendance.unserved(found);
    return found.map((one) => toPublicConversation(one, hindered.get(one.id) ?? unserved(one)));
  }

  async rename(conversation: string, title: string): Promise<PublicConversation> {
    checkName(title, 'title');
    const { id } = await this.#find(conversation);
    return this.#shown(await this.#store.setTitle(this.owner, id, title.trim(), 'caller'));
  }

  async arrange(conversation: string, change: Arrangement): Promise<PublicConversation> {
    const checked = checkArrangement(change);
    const { id } = await this.#find(conversation);
    return this.#shown(await this.#store.arrange(this.owner, id, checked));
  }

  async countPutAway(): Promise<number> {
    return this.#store.countPutAway(this.owner);
  }

  async move(conversation: string): Promise<PublicConversation> {
    const found = await this.#find(conversation);
    return this.#shown(await this.#machinery.attendance.move(found, this.#actor.by));
  }

  async erase(conversation: string, options: EraseOptions = {}): Promise<Erased> {
    await this.#endLeftTurn(conversation).catch((error: unknown) => {
      // A damaged turn cannot be ended, but its conversation can be erased.
      if (!isDamage(error)) throw error;
    });
    return erase(this.#parts, this.owner, conversation, options);
  }

  // ── turns ──

  async submit(conversation: string, prompt: unknown, options: SubmitOptions = {}): Promise<Submitted> {
    // A session cannot be adopted while a turn is open.
    if (options.session !== undefined) await this.#endLeftTurn(conversation);
    return toSubmitted(await submit(this.#machinery, this.#actor, conversation, prompt, options));
  }

  async turn(id: string): Promise<PublicTurn> {
    const { turn, hindrance } = await this.#refreshedTurn(id);
    return toPublicTurn(turn, hindrance);
  }

  async answerOf(turn: string, options: AnswerOptions = {}) {
    const ended = await readEnded(() => this.#refreshedTurn(turn), this.#machinery.changes, options);
    return answerOf(this.#store, this.owner, ended);
  }

  async pending({ after, limit }: PendingPage = {}): Promise<PendingTurn[]> {
    const page = { ...given({ after }), limit: checkLimit(limit, 100) };
    const { found, hindered } = await this.#refreshedPage(
      () => this.#store.pending(this.owner, page),
      ({ turn }) => (hasEnded(turn.state) ? null : turn.conversation),
    );
    return found.map(({ turn, seq }) => ({ turn: toPublicTurn(turn, hindered.get(turn.conversation)), seq }));
  }

  async delivered(turn: string): Promise<PublicTurn> {
    await this.#refreshedTurn(turn);
    return toPublicTurn(await this.#store.setDelivered(this.owner, turn));
  }

  async told(turn: string, options: ToldOptions = {}) {
    return toldOf(this.#store, this.owner, (await this.#refreshedTurn(turn)).turn, options);
  }

  async turns(conversation: string, page: TurnPage = {}) {
    const { id, hindrance } = await this.#refreshed(conversation);
    return turnsWithReplies(this.#store, { owner: this.owner, id, hindrance }, checkRange(page));
  }

  async outline(conversation: string, page: TurnPage = {}) {
    const range = checkRange(page);
    return this.#store.outline(this.owner, (await this.#refreshed(conversation)).id, range);
  }

  async records(conversation: string, page: TurnPage = {}) {
    const range = checkRange(page);
    const { id } = await this.#refreshed(conversation);
    if ('after' in range) return this.#store.recordsAfter(this.owner, id, range);
    const { before, limit } = range;
    return (await this.#store.recordsBefore(this.owner, id, { upTo: before - 1, limit })).toReversed();
  }

  async cancel(turn: string): Promise<PublicTurn> {
    const cancelled = await this.#store.requestCancel(this.owner, turn, this.#actor.by);
    // If its worker is dead, this process ends the turn.
    if (!hasEnded(cancelled.state)) this.#machinery.worker.want(this.owner, cancelled.conversation, turn);
    return toPublicTurn(cancelled);
  }

  async queue(conversation: string, page: QueuePage = {}): Promise<PublicTurn[]> {
    const { id, hindrance } = await this.#refreshed(conversation);
    const range = { after: checkAfter(page.after), limit: checkLimit(page.limit, 100) };
    return (await this.#store.queued(this.owner, id, range)).map((turn) => toPublicTurn(turn, hindrance));
  }

  async requeue(conversation: string, turns: readonly QueueTurn[], options: { requestId?: string } = {}) {
    const { conversation: found } = await this.#refreshed(conversation);
    return requeue(this.#machinery, found, turns, { requestId: options.requestId ?? null, by: this.#actor.by });
  }

  async retry(turn: string, options: Pick<SubmitOptions, 'requestId' | 'permissions'> = {}): Promise<Submitted> {
    const ended = await this.#refreshedTurn(turn);
    return toSubmitted(await retry(this.#machinery, this.#actor, ended, options));
  }

  // ── watching ──

  async *follow(conversation: string, options: FollowOptions = {}) {
    const found = await this.#findToFollow(conversation);
    const { id } = found;
    const { signal, log } = options;
    const after = checkAfter(options.after);
    checkEventNumber({ after, log }, found);
    const { changes, worker } = this.#machinery;
    yield* follow(this.#store, changes, {
      owner: this.owner,
      id,
      after,
      signal,
      onQuiet: async () => {
        // A command that runs the turn itself has reported a missing data file, and continues when the file is back.
        if (worker.takesUp || !worker.holds(id)) await this.#store.check();
        worker.checkRuns(id);
        // A process that takes up turns finds those of dead processes by itself.
        if (!worker.takesUp && !worker.holds(id)) await this.#refresh([id]);
      },
    });
  }

  async events(conversation: string, { turn, log, ...page }: EventPage = {}) {
    const before = checkBefore(page.before ?? 'end');
    const limit = checkLimit(page.limit, 100);
    const of = turn === undefined ? {} : { turn: checkTurnNumber(turn) };
    const { id, conversation: found } = await this.#refreshed(conversation);
    checkEventNumber({ after: before === Number.MAX_SAFE_INTEGER ? 0 : before - 1, log }, found);
    return (await this.#store.eventsBefore(this.owner, id, { before, limit, ...of })).map(toPublicEvent);
  }

  hints(options: { signal?: AbortSignal } = {}) {
    return hints(this.#store, this.#machinery.changes, this.owner, options.signal);
  }

  async warm(
    conversation: string,
    options: { agent?: string; restore?: TurnRestore } = {},
  ): Promise<PublicReceipt | null> {
    checkAgent(this.#parts, options.agent);
    const found = await this.#find(conversation);
    const { id } = await this.#machinery.attendance.ensureServed(found);
    const restore = parseTurnRestore(options.restore);
    const receipt = await this.#machinery.worker.withHeld(id, (held, shutdown) =>
      warm(held, options.agent ?? null, restore, shutdown),
    );
    return receipt && toPublicReceipt(receipt);
  }

  async kill(conversation: string) {
    const { id } = (await this.#refreshed(conversation)).conversation;
    return kill(this.#parts, this.#machinery.worker, { ...this.#actor, id });
  }

  async changes(conversation: string) {
    const { sandbox, cwd } = await this.#withDirectory(conversation);
    return this.#parts.sandboxes.changes(sandbox, { cwd });
  }

  async keepChanges(conversation: string, keep: Keep) {
    const { sandbox, worktrees } = await this.#worktreeAtRest(conversation);
    return worktrees.keep(sandbox, checkKeep(keep));
  }

  async discardChanges(conversation: string) {
    const { sandbox, worktrees } = await this.#worktreeAtRest(conversation);
    await worktrees.discard(sandbox);
  }

  /** The agents are ended first: one that still runs could replace a folder by a link while git writes there. */
  async #worktreeAtRest(conversation: string) {
    const { id, sandbox, state } = await this.#withDirectory(conversation);
    const { worktrees } = this.#parts.sandboxes;
    if (!isWorktree(sandbox) || worktrees === undefined) {
      throw new ThroughlineError('refused', 'This conversation has no worktree.', {
        hint: 'What was changed is in its directory: keep or discard it there with git.',
      });
    }
    if (state === 'running' || state === 'asks') {
      throw new ThroughlineError('conflict', 'The worktree is in use: a turn is running.', {
        hint: 'Wait until it has ended, or cancel it.',
      });
    }
    await kill(this.#parts, this.#machinery.worker, { ...this.#actor, id });
    return { sandbox, worktrees };
  }

  async files(conversation: string, options: { match?: string } = {}) {
    const match = checkMatch(options.match);
    const { sandbox, cwd } = await this.#withDirectory(conversation);
    return this.#parts.sandboxes.files(sandbox, { cwd, match });
  }

  async directories(options: DirectoryOptions = {}) {
    const { sandboxes } = this.#parts;
    const { path = null, hidden = false } = checkDirectories(options);
    if (sandboxes.directories !== undefined) return sandboxes.directories({ path, hidden });
    throw new ThroughlineError('refused', 'Directories cannot be chosen here: conversations work on other machines.', {
      hint: 'Leave the directory out, or give its whole path there.',
    });
  }

  async #withDirectory(conversation: string) {
    const found = await this.#find(conversation);
    const { place } = this.#parts.sandboxes;
    if (runsAt(found.place, place)) return found;
    throw new ThroughlineError('refused', 'The directory of this conversation belongs to another data home.', {
      hint: 'Use the data home where the conversation was created.',
    });
  }

  async show(conversation: string, options: Bounded = {}) {
    const { id, hindrance } = await this.#refreshed(conversation);
    return showConversation(this.#store, await this.#find(id), { ...options, hindrance });
  }

  async summary(conversation: string) {
    const { id, hindrance } = await this.#refreshed(conversation);
    return toPublicSummary(await this.#store.summary(this.owner, id), hindrance, this.#parts.processes.self());
  }

  async sessions(conversation: string, { most }: Bounded = {}) {
    const { id } = await this.#refreshed(conversation);
    return new SizeLimit(most).checked(toPublicSessions(await this.#store.sessions(this.owner, id)));
  }

  async receipts(conversation: string, { most }: Bounded = {}) {
    const { id } = await this.#find(conversation);
    return new SizeLimit(most).checked((await this.#store.receipts(this.owner, id)).map(toPublicReceipt));
  }

  async restores(conversation: string, page: TurnPage = {}) {
    const range = checkRange(page);
    const { id } = await this.#find(conversation);
    const found = await this.#store.restores(this.owner, id, range);
    return found.map(({ n, receipt }) => ({ n, receipt: toPublicReceipt(receipt) }));
  }

  async permission(id: string) {
    return toPublicPermission(await this.#refreshedPermission(id));
  }

  async permissions({ conversation, turn, fromTurn, toTurn, open, after, limit }: PermissionFilter = {}) {
    const turns = checkTurnSpan({ conversation, fromTurn, toTurn });
    const id = conversation === undefined ? undefined : (await this.#find(conversation)).id;
    const page = { ...given({ after }), limit: checkLimit(limit, 100) };
    const filter = given({ conversation: id, turn, turns, open });
    // If the process that asked is dead, its question is withdrawn.
    const { found } = await this.#refreshedPage(
      () => this.#store.permissions(this.owner, filter, page),
      (asked) => (asked.state === 'open' ? asked.conversation : null),
    );
    return found.map(toPublicPermission);
  }

  async answer(permission: string, optionId: string, options: PermissionAnswer = {}) {
    const from = checkAnsweredFrom(options.from);
    await this.#refreshedPermission(permission);
    return toPublicPermission(await this.#store.answer(this.owner, permission, optionId, this.#actor.by, from));
  }

  // ── copies, search, the rest ──

  async fork(conversation: string, options: ForkOptions = {}): Promise<PublicConversation> {
    return this.#shown(
      await forkConversation(this.#parts, (await this.#refreshed(conversation)).conversation, options),
    );
  }

  async export(conversation: string, options: Bounded = {}) {
    return exportConversation(this.#store, (await this.#refreshed(conversation)).conversation, options);
  }

  async import(exported: unknown, options: ImportOptions = {}): Promise<PublicConversation> {
    return this.#shown(await importConversation(this.#parts, this.owner, exported, options));
  }

  async search(query: string, options: { limit?: number } = {}) {
    return search(this.#store, this.owner, checkText(query, 'search'), checkLimit(options.limit, 20));
  }

  async usage(page: Parameters<Engine['usage']>[0] = {}) {
    return this.#store.usage(this.owner, checkUsagePage(page));
  }

  async verify(conversation: string, { head }: { head?: string } = {}) {
    if (head !== undefined) checkHead(head);
    const found = await this.#store.findConversation(this.owner, conversation);
    return this.#store.verify(this.owner, found?.id ?? conversation, head).catch(async (error: unknown) => {
      if (!hasCode(error, 'not_found')) throw error;
      const lost = (await this.#store.losses()).flatMap((loss) => loss.conversations);
      // The key of a conversation that is lost as a whole is lost, too: it may be this one.
      if (lost.every(({ has }) => has !== null)) throw noSuchConversation(conversation);
      const { message } = noSuchConversation(conversation);
      throw new ThroughlineError('not_found', message, { hint: LOST_WHOLE });
    });
  }

  agents(options: { login?: boolean } = {}) {
    return this.#machinery.agents.list(options);
  }

  close(options: { graceMs?: number } = {}): Promise<void> {
    return this.#machinery.close(Math.min(options.graceMs ?? 5_000, LONGEST_TIMER_MS));
  }

  /** The stored value. Callers get the public value that is made from it. */
  #find(idOrKey: string): Promise<Conversation> {
    return findConversation(this.#store, this.owner, idOrKey);
  }

  // ── refreshing: turns that a dead process left are ended, and the reason is found why others do not run ──

  #refresh(conversations: readonly string[]): Promise<Refreshed> {
    return this.#machinery.attendance.refresh(this.owner, conversations);
  }

  /** `openIn`: the conversation whose open turn a value depends on; null: on none. The page is read again if a turn has ended. */
  async #refreshedPage<T>(read: () => Promise<T[]>, openIn: (value: T) => string | null) {
    const found = await read();
    const open = new Set(found.map(openIn).filter((id) => id !== null));
    const { changed, hindered } = await this.#refresh([...open]);
    return { found: changed ? await read() : found, hindered };
  }

  async #refreshed(idOrKey: string) {
    return this.#refreshFound(await this.#find(idOrKey));
  }

  async #refreshFound(found: Conversation): Promise<{ id: string; conversation: Conversation; hindrance: Hindrance }> {
    const { id } = found;
    const { changed, hindered } = await this.#refresh(found.open > 0 ? [id] : []);
    const conversation = changed ? await this.#find(id) : found;
    const unserved = await this.#machinery.attendance.unserved([conversation]);
    return { id, conversation, hindrance: hindered.get(id) ?? unserved(conversation) };
  }

  /** For following. If this process holds the conversation, no dead process has left a turn in it. */
  async #findToFollow(idOrKey: string): Promise<Conversation> {
    const found = await this.#find(idOrKey);
    return this.#machinery.worker.holds(found.id) ? found : (await this.#refreshFound(found)).conversation;
  }

  /** For what an open turn prevents: ends the turn that a dead process left. */
  async #endLeftTurn(idOrKey: string): Promise<void> {
    const found = await this.#store.findConversation(this.owner, idOrKey);
    if (found !== null && found.open > 0) await this.#refresh([found.id]);
  }

  async #shown(found: Conversation): Promise<PublicConversation> {
    if (found.open === 0) {
      return toPublicConversation(found, (await this.#machinery.attendance.unserved([found]))(found));
    }
    const { conversation, hindrance } = await this.#refreshed(found.id);
    return toPublicConversation(conversation, hindrance);
  }

  async #refreshedTurn(id: string): Promise<{ turn: Turn; hindrance: Hindrance }> {
    const turn = await this.#findTurn(id);
    if (hasEnded(turn.state)) return { turn, hindrance: NO_HINDRANCE };
    const { changed, hindered } = await this.#refresh([turn.conversation]);
    const hindrance = hindered.get(turn.conversation) ?? NO_HINDRANCE;
    return { turn: changed ? await this.#findTurn(id) : turn, hindrance };
  }

  async #refreshedPermission(id: string): Promise<Permission> {
    const find = async () => {
      const found = await this.#store.findPermission(this.owner, id);
      if (found === null) throw noSuchPermission(id);
      return found;
    };
    const found = await find();
    if (found.state !== 'open') return found;
    const { changed } = await this.#refresh([found.conversation]);
    return changed ? find() : found;
  }

  async #findTurn(id: string): Promise<Turn> {
    const turn = await this.#store.findTurn(this.owner, id);
    if (turn === null) throw noSuchTurn(id);
    return turn;
  }
}

function toSubmitted({ turn, seq, duplicate }: Enqueued): Submitted {
  return { turn: toPublicTurn(turn), seq, duplicate };
}
