import { type Actor, actor } from '../core/actor.ts';
import { checkAfter, checkLimit, checkText } from '../core/arguments.ts';
import type { Conversation } from '../core/conversation.ts';
import { noSuchConversation, noSuchPermission, noSuchTurn, ThroughlineError } from '../core/errors.ts';
import { checkHead } from '../core/event.ts';
import { given } from '../core/given.ts';
import { checkName } from '../core/names.ts';
import type { Receipt } from '../core/receipt.ts';
import { parseRestore, type RestoreOverride } from '../core/restore-settings.ts';
import { hasEnded, type Turn } from '../core/turn.ts';
import { checkUsagePage } from '../core/usage-page.ts';
import { conversationLeases, freeDead } from '../leases/lease-keeper.ts';
import type {
  Bounded,
  ConversationSpec,
  Engine,
  ForkOptions,
  PermissionFilter,
  SubmitOptions,
  Submitted,
} from '../ports/engine.ts';
import { checkAgent, listAgents } from './intake/agents.ts';
import { ensureConversation, findConversation, forkConversation } from './intake/conversations.ts';
import { exportConversation, importConversation } from './intake/portable.ts';
import { retry, submit } from './intake/submit.ts';
import { type EngineParts, LONGEST_TIMER_MS } from './parts.ts';
import { Changes } from './reading/changes.ts';
import { follow } from './reading/follow.ts';
import { hints } from './reading/hints.ts';
import { Room } from './reading/room.ts';
import { answerOf, showConversation } from './reading/views.ts';
import { warm } from './worker/warm.ts';
import { Worker } from './worker/worker.ts';

/** Puts the engine together and starts its worker. */
export function createEngine(parts: EngineParts, owner: string): Engine {
  const changes = new Changes(parts.store, parts.settings.pollMs);
  const worker = new Worker(parts, changes);
  let closing: Promise<void> | null = null;
  const close = (graceMs: number) => {
    closing ??= worker.close(graceMs).finally(async () => {
      changes.close();
      await parts.store.close();
    });
    return closing;
  };
  return new EmbeddedEngine({ parts, changes, worker, close }, actor(owner));
}

interface Machinery {
  readonly parts: EngineParts;
  readonly changes: Changes;
  readonly worker: Worker;
  readonly close: (graceMs: number) => Promise<void>;
}

class EmbeddedEngine implements Engine {
  readonly owner: string;
  readonly #by: string;
  readonly #machinery: Machinery;

  constructor(machinery: Machinery, { owner, by }: Actor) {
    this.#machinery = machinery;
    this.owner = owner;
    this.#by = by;
  }

  as(owner: string, by?: string): Engine {
    return new EmbeddedEngine(this.#machinery, actor(owner, by));
  }

  get #parts(): EngineParts {
    return this.#machinery.parts;
  }

  get #store() {
    return this.#parts.store;
  }

  // ── conversations ──

  async ensure(spec: ConversationSpec): Promise<Conversation> {
    checkAgent(this.#parts, spec.agent);
    return ensureConversation(this.#parts, this.owner, spec);
  }

  conversation(idOrKey: string): Promise<Conversation> {
    return findConversation(this.#store, this.owner, idOrKey);
  }

  async list(page: Parameters<Engine['list']>[0] = {}): Promise<Conversation[]> {
    return this.#store.listConversations(this.owner, { ...page, limit: checkLimit(page.limit, 50) });
  }

  async rename(conversation: string, title: string): Promise<Conversation> {
    checkName(title, 'title');
    const { id } = await this.conversation(conversation);
    return this.#store.setTitle(this.owner, id, title.trim(), 'caller');
  }

  async erase(conversation: string): Promise<void> {
    const { id } = await this.conversation(conversation);
    await this.#store.eraseConversation(this.owner, id);
  }

  // ── turns ──

  submit(conversation: string, prompt: unknown, options: SubmitOptions = {}): Promise<Submitted> {
    return submit(this.#machinery, this.owner, conversation, prompt, options);
  }

  async turn(id: string): Promise<Turn> {
    const turn = await this.#store.findTurn(this.owner, id);
    if (turn === null) throw noSuchTurn(id);
    return turn;
  }

  async answerOf(turn: string) {
    return answerOf(this.#store, this.owner, await this.turn(turn));
  }

  async turns(conversation: string, page: { after?: number; limit?: number } = {}): Promise<Turn[]> {
    const { id } = await this.conversation(conversation);
    return this.#store.turns(this.owner, id, { after: checkAfter(page.after), limit: checkLimit(page.limit, 100) });
  }

  async cancel(turn: string): Promise<Turn> {
    const cancelled = await this.#store.requestCancel(this.owner, turn, this.#by);
    // Its worker may be dead: then this process ends the turn.
    if (!hasEnded(cancelled.state)) this.#machinery.worker.want(this.owner, cancelled.conversation, turn);
    return cancelled;
  }

  async retry(turn: string, options: { requestId?: string } = {}): Promise<Submitted> {
    return retry(this.#machinery, this.owner, await this.turn(turn), options.requestId ?? null);
  }

  // ── watching ──

  follow(conversation: string, { after, signal }: { after?: number; signal?: AbortSignal } = {}) {
    const find = async () => ({ id: (await this.conversation(conversation)).id, after: checkAfter(after) });
    return follow(this.#store, this.#machinery.changes, this.owner, find, signal);
  }

  hints(options: { signal?: AbortSignal } = {}) {
    return hints(this.#store, this.#machinery.changes, this.owner, options.signal);
  }

  async warm(
    conversation: string,
    options: { agent?: string; restore?: RestoreOverride } = {},
  ): Promise<Receipt | null> {
    checkAgent(this.#parts, options.agent);
    const { id } = await this.conversation(conversation);
    const restore = parseRestore(options.restore);
    return this.#machinery.worker.withHeld(id, (held, shutdown) =>
      warm(held, options.agent ?? null, restore, shutdown),
    );
  }

  async show(conversation: string, options: Bounded = {}) {
    return showConversation(this.#store, await this.conversation(conversation), options);
  }

  async summary(conversation: string) {
    return this.#store.summary(this.owner, (await this.conversation(conversation)).id);
  }

  async sessions(conversation: string, { most }: Bounded = {}) {
    const { id } = await this.conversation(conversation);
    return new Room(most).taking(await this.#store.sessions(this.owner, id));
  }

  async receipts(conversation: string, { most }: Bounded = {}) {
    const { id } = await this.conversation(conversation);
    return new Room(most).taking(await this.#store.receipts(this.owner, id));
  }

  async permission(id: string) {
    const found = await this.#store.findPermission(this.owner, id);
    if (found === null) throw noSuchPermission(id);
    return found;
  }

  async permissions({ conversation, open, after, limit }: PermissionFilter = {}) {
    const id = conversation === undefined ? undefined : (await this.conversation(conversation)).id;
    const page = { ...given({ after }), limit: checkLimit(limit, 100) };
    return this.#store.permissions(this.owner, given({ conversation: id, open }), page);
  }

  async answer(permission: string, optionId: string) {
    // That whoever asked has died nobody may have noticed yet; then there is none to hear the answer.
    await freeDead(conversationLeases(this.#store), this.#parts.processes);
    return this.#store.answer(this.owner, permission, optionId, this.#by);
  }

  // ── copies, search, the rest ──

  async fork(conversation: string, options: ForkOptions = {}): Promise<Conversation> {
    return forkConversation(this.#parts, await this.conversation(conversation), options);
  }

  async export(conversation: string, options: Bounded = {}) {
    return exportConversation(this.#store, await this.conversation(conversation), options);
  }

  import(exported: unknown, options: { key?: string; cwd?: string } = {}): Promise<Conversation> {
    return importConversation(this.#parts, this.owner, exported, options);
  }

  async search(query: string, options: { limit?: number } = {}) {
    return this.#store.search(this.owner, checkText(query, 'search'), checkLimit(options.limit, 20));
  }

  async usage(page: Parameters<Engine['usage']>[0] = {}) {
    return this.#store.usage(this.owner, checkUsagePage(page));
  }

  async verify(conversation: string, { head }: { head?: string } = {}) {
    if (head !== undefined) checkHead(head);
    const found = await this.#store.findConversation(this.owner, conversation);
    return this.#store.verify(this.owner, found?.id ?? conversation, head).catch((error: unknown) => {
      if (error instanceof ThroughlineError && error.code === 'not_found') throw noSuchConversation(conversation);
      throw error;
    });
  }

  agents(options: { login?: boolean } = {}) {
    return listAgents(this.#parts, options);
  }

  close(options: { graceMs?: number } = {}): Promise<void> {
    return this.#machinery.close(Math.min(options.graceMs ?? 5_000, LONGEST_TIMER_MS));
  }
}
