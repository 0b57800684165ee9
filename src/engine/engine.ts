import { randomUUIDv7 } from 'node:crypto';
import { checkAfter, checkLimit, checkText } from '../core/arguments.ts';
import { parsePrompt } from '../core/content.ts';
import type { Conversation } from '../core/conversation.ts';
import {
  noSuch,
  noSuchAgent,
  noSuchConversation,
  noSuchPermission,
  noSuchTurn,
  ThroughlineError,
} from '../core/errors.ts';
import { checkName } from '../core/names.ts';
import type { Receipt } from '../core/receipt.ts';
import { replyText } from '../core/record.ts';
import { parseRestore, type RestoreOverride } from '../core/restore-settings.ts';
import { hasEnded, type Turn, type TurnOptions } from '../core/turn.ts';
import { checkUsagePage } from '../core/usage-page.ts';
import type {
  Bounded,
  ConversationSpec,
  Engine,
  ForkOptions,
  PermissionFilter,
  SubmitOptions,
  Submitted,
} from '../ports/engine.ts';
import { Changes } from './changes.ts';
import { newConversation } from './conversations.ts';
import { reapDeadWorkers } from './dead-workers.ts';
import { follow } from './follow.ts';
import { hints } from './hints.ts';
import type { EngineParts } from './parts.ts';
import { exportConversation, importConversation } from './portable.ts';
import { Room } from './room.ts';
import { listAgents, showConversation } from './views.ts';
import { warm } from './warm.ts';
import { Worker } from './worker.ts';

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
  return new EmbeddedEngine({ parts, changes, worker, close }, owner);
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

  constructor(machinery: Machinery, owner: string, by = owner) {
    this.#machinery = machinery;
    // Halves of characters are all the same to a database, and so would be those whose names have one.
    this.owner = checkText(owner, 'owner');
    this.#by = checkText(by, 'name of who acts');
  }

  as(owner: string, by?: string): Engine {
    return new EmbeddedEngine(this.#machinery, owner, by);
  }

  get #parts(): EngineParts {
    return this.#machinery.parts;
  }

  get #store() {
    return this.#parts.store;
  }

  // ── conversations ──

  async ensure(spec: ConversationSpec): Promise<Conversation> {
    this.#knownAgent(spec.agent);
    const fresh = await newConversation(this.#parts, this.owner, spec);
    // Our id serves as well as the key: what a fork printed must not become the key of an empty conversation.
    const known = spec.key === undefined ? null : await this.#store.findConversation(this.owner, spec.key);
    const { conversation, created } =
      known === null
        ? await this.#store.ensureConversation(this.owner, fresh)
        : { conversation: known, created: false };
    if (!created) refuseOtherwisePinned(conversation, spec, fresh);
    if (!created && spec.title !== undefined) return this.rename(conversation.id, spec.title);
    return conversation;
  }

  async conversation(idOrKey: string): Promise<Conversation> {
    const found = await this.#store.findConversation(this.owner, idOrKey);
    if (found === null) throw noSuchConversation(idOrKey);
    return found;
  }

  list(page: Parameters<Engine['list']>[0] = {}): Promise<Conversation[]> {
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

  async submit(conversation: string, prompt: unknown, options: SubmitOptions = {}): Promise<Submitted> {
    const blocks = parsePrompt(prompt);
    this.#knownAgent(options.agent);
    const found = this.#machinery.worker.held(this.owner, conversation) ?? (await this.conversation(conversation));
    if (found.driver === 'tracker') throw drivenElsewhere(found);
    return this.#enqueue(found.id, {
      requestId: options.requestId ?? null,
      agent: options.agent ?? null,
      prompt: blocks,
      options: turnOptions(options),
      retryOf: null,
    });
  }

  async turn(id: string): Promise<Turn> {
    const turn = await this.#store.findTurn(this.owner, id);
    if (turn === null) throw noSuchTurn(id);
    return turn;
  }

  async answerOf(id: string) {
    const turn = await this.turn(id);
    const { conversation, n } = turn;
    const [record] = await this.#store.recordsBefore(this.owner, conversation, { upTo: n, limit: 1 });
    const receipt = (await this.#store.receipts(this.owner, conversation, { turn: n })).at(-1);
    if (receipt === undefined) throw noSuch('receipt of turn', id);
    return { turn, reply: record?.n === n ? replyText(record.parts) : '', receipt };
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
    const { conversation, agent, prompt, state, options: before } = await this.turn(turn);
    const found = await this.conversation(conversation);
    if (found.driver === 'tracker') throw drivenElsewhere(found);
    if (!hasEnded(state)) {
      throw new ThroughlineError('conflict', `The turn is still ${state}.`, {
        hint: 'Cancel it first, or wait for its end.',
      });
    }
    const { session: _, ...kept } = before;
    return this.#enqueue(conversation, {
      requestId: options.requestId ?? null,
      agent,
      prompt,
      options: kept,
      retryOf: turn,
    });
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
    this.#knownAgent(options.agent);
    const { id } = await this.conversation(conversation);
    const restore = parseRestore(options.restore);
    return this.#machinery.worker.withHold(id, (hold, shutdown) =>
      warm(hold, options.agent ?? null, restore, shutdown),
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
    await reapDeadWorkers(this.#parts);
    return this.#store.answer(this.owner, permission, optionId, this.#by);
  }

  // ── copies, search, the rest ──

  async fork(conversation: string, options: ForkOptions = {}): Promise<Conversation> {
    const source = await this.conversation(conversation);
    const n = options.turn ?? source.head;
    if (!Number.isSafeInteger(n) || n < 1 || n > source.head) {
      throw new ThroughlineError('invalid', `Turn ${n} is not in the history of this conversation.`, {
        hint: source.head === 0 ? 'It has no turns yet.' : `Name one from 1 to ${source.head}.`,
      });
    }
    const { key, title, cwd } = options;
    const spec = {
      agent: source.agent,
      key,
      title,
      cwd: cwd ?? source.cwd,
      restore: source.restore,
    };
    await this.#freeKey(key);
    return this.#store.fork(this.owner, source.id, n, await newConversation(this.#parts, this.owner, given(spec)));
  }

  async export(conversation: string, options: Bounded = {}) {
    return exportConversation(this.#store, await this.conversation(conversation), options);
  }

  async import(exported: unknown, options: { key?: string; cwd?: string } = {}): Promise<Conversation> {
    await this.#freeKey(options.key);
    return importConversation(this.#parts, this.owner, exported, options);
  }

  search(query: string, options: { limit?: number } = {}) {
    return this.#store.search(this.owner, checkText(query, 'search'), checkLimit(options.limit, 20));
  }

  async usage(page: Parameters<Engine['usage']>[0] = {}) {
    return this.#store.usage(this.owner, checkUsagePage(page));
  }

  async verify(conversation: string) {
    const found = await this.#store.findConversation(this.owner, conversation);
    return this.#store.verify(this.owner, found?.id ?? conversation).catch((error: unknown) => {
      if (error instanceof ThroughlineError && error.code === 'not_found') throw noSuchConversation(conversation);
      throw error;
    });
  }

  agents(options: { login?: boolean } = {}) {
    return listAgents(this.#parts, options);
  }

  close(options: { graceMs?: number } = {}): Promise<void> {
    return this.#machinery.close(options.graceMs ?? 5_000);
  }

  // ── helpers ──

  async #enqueue(
    conversation: string,
    turn: Omit<Parameters<EngineParts['store']['enqueue']>[1], 'id' | 'conversation' | 'defaultAgent' | 'agents'>,
  ) {
    if (turn.requestId !== null) checkText(turn.requestId, 'request id');
    const { settings, agents } = this.#parts;
    const known = { defaultAgent: settings.defaultAgent, agents: [...agents.keys()] };
    const fresh = { id: randomUUIDv7(), conversation, ...known, ...turn };
    const accepted = await this.#machinery.worker.accept(this.owner, fresh);
    if (!hasEnded(accepted.turn.state)) this.#machinery.worker.want(this.owner, conversation, accepted.turn.id);
    return accepted;
  }

  /** A key that looks like the id of another conversation would hide one of them. */
  async #freeKey(key: string | undefined): Promise<void> {
    if (key === undefined || (await this.#store.findConversation(this.owner, key)) === null) return;
    throw new ThroughlineError('conflict', `There is a conversation "${key}" already.`, {
      hint: 'Choose another key.',
    });
  }

  #knownAgent(name: string | undefined): void {
    const { agents } = this.#parts;
    if (name !== undefined && !agents.has(name)) throw noSuchAgent(name, agents.keys());
  }
}

function turnOptions({ session, restore, permissions }: SubmitOptions): TurnOptions {
  if (session !== undefined) checkText(session, 'session id');
  if (permissions !== undefined && permissions !== 'ask' && permissions !== 'deny') {
    throw new ThroughlineError('invalid', 'permissions must be "ask" or "deny".');
  }
  const parsed = restore === undefined ? undefined : parseRestore(restore);
  if (session !== undefined && parsed?.policy === 'off') {
    throw new ThroughlineError(
      'invalid',
      'A turn that names its session goes on in it: that is not the policy "off".',
      {
        hint: 'Leave one of them out.',
      },
    );
  }
  if (session !== undefined && parsed?.rung) {
    throw new ThroughlineError('invalid', `A turn names either its session or its rung, not both.`, {
      hint: 'A session that is named is resumed; leave the rung out.',
    });
  }
  return given({ session, restore: parsed, permissions });
}

/** What an existing conversation has pinned cannot be set otherwise (R8), and is not ignored either (R7). */
function refuseOtherwisePinned(
  existing: Conversation,
  spec: ConversationSpec,
  asked: { sandbox: string; cwd: string | null; restore: Conversation['restore'] },
): void {
  const refuse = (what: string, hint: string) => {
    throw new ThroughlineError('refused', `The conversation "${existing.key}" exists with another ${what}.`, { hint });
  };
  const fork = 'It never changes; fork the conversation to have another.';
  if (existing.driver === 'tracker') throw drivenElsewhere(existing);
  if (spec.cwd !== undefined && existing.cwd !== asked.cwd) refuse('working directory', fork);
  if (spec.sandbox !== undefined && existing.sandbox !== asked.sandbox) refuse('sandbox', fork);
  for (const name of Object.keys(asked.restore) as (keyof Conversation['restore'])[]) {
    if (existing.restore[name] !== asked.restore[name]) refuse(`restore.${name}`, 'Give it with the turn instead.');
  }
}

function drivenElsewhere(conversation: Conversation): ThroughlineError {
  return new ThroughlineError(
    'refused',
    `"${conversation.key ?? conversation.id}" is driven by another program through a ConversationTracker.`,
    {
      hint: 'Use another key, or fork it to go on here.',
    },
  );
}

/** Leaves out what is not set, so that "not set" and "set to undefined" are the same. */
function given<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined | null> } {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined && v !== null)) as never;
}
