import { checkKeep, type Keep } from '../../core/changes.ts';
import { type Arrangement, checkArrangement, checkFilter, checkUnfiltered } from '../../core/conversation.ts';
import { hasCode, noSuch, noSuchConversation, SCRIPTED } from '../../core/errors.ts';
import { checkHead } from '../../core/event.ts';
import {
  checkAfter,
  checkBefore,
  checkDirectories,
  checkLimit,
  checkMatch,
  checkRange,
  checkText,
  checkTurnNumber,
  checkWait,
  given,
} from '../../core/input/arguments.ts';
import { asJsonMessages } from '../../core/input/message-content.ts';
import { importSteps } from '../../core/input/messages.ts';
import { checkKey, checkName } from '../../core/input/names.ts';
import { checkUsagePage } from '../../core/input/usage-page.ts';
import type { PublicConversation } from '../../core/public/conversation.ts';
import type { PublicEvent } from '../../core/public/event.ts';
import type { PublicRestore } from '../../core/public/session.ts';
import type { PublicPermission, PublicTold, PublicTurn, TurnOutline } from '../../core/public/turn.ts';
import { parseQueueChanges } from '../../core/queue.ts';
import { parseRestore, parseTurnRestore, type TurnRestore } from '../../core/restore/restore-settings.ts';
import { checkCommand } from '../../core/sandbox/sandbox.ts';
import { changeChoices, parseChoices } from '../../core/turn/choices.ts';
import { parsePrompt } from '../../core/turn/content.ts';
import { checkAnsweredFrom } from '../../core/turn/permission.ts';
import type { TurnRecord } from '../../core/turn/record.ts';
import type { EngineSandboxes } from '../../ports/engine/sandboxes.ts';
import type {
  AnswerOptions,
  ConversationSpec,
  DirectoryOptions,
  Engine,
  Erased,
  EraseOptions,
  EventPage,
  FollowOptions,
  ForkOptions,
  Hint,
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
  TurnView,
} from '../../ports/engine.ts';
import { checkDirectory, checkSegment, permissionIn, turnIn } from './addresses.ts';
import type { Caller } from './caller.ts';
import { RECONNECTED } from './connection/event-stream.ts';

/**
 * The engine of a server, over HTTP: the same interface and the same answers as an embedded one. Arguments are checked here as
 * there, so that errors read the same. A prompt without a request id gets one, so that it can be repeated after a lost reply.
 */
export class HttpEngine implements Engine {
  readonly owner: string;
  /** For other requests to this server. */
  readonly caller: Caller;

  constructor(caller: Caller) {
    this.owner = caller.owner;
    this.caller = caller;
  }

  as(owner: string, by?: string): Engine {
    return new HttpEngine(this.caller.as(owner, by));
  }

  get sandboxes(): EngineSandboxes {
    return httpSandboxes(this.caller);
  }

  // ── conversations ──

  async ensure(spec: ConversationSpec): Promise<PublicConversation> {
    // Without a key, repeating it would create a second conversation.
    return this.caller.ask('ensureConversation', { body: checkedSpec(spec), repeatable: spec.key !== undefined });
  }

  async conversation(idOrKey: string): Promise<PublicConversation> {
    return this.caller.ask('getConversation', { params: this.#at(idOrKey) });
  }

  async list(page: ListOptions = {}): Promise<PublicConversation[]> {
    const { before, session } = page;
    const limit = checkLimit(page.limit, 50);
    const { agent, states, pinned, putAway, ...times } = checkFilter(page);
    if (session !== undefined) {
      checkUnfiltered('session', page);
      checkText(session, 'session id');
    }
    const [since, until] = [times.since, times.until].map((time) =>
      time === undefined ? undefined : new Date(time).toISOString(),
    );
    const last = before && `${before.updatedAt}_${before.id}`;
    const query = { limit, before: last, session, agent, state: states?.join(','), since, until, pinned, putAway };
    return (await this.caller.ask('listConversations', { query })).conversations;
  }

  async move(conversation: string): Promise<PublicConversation> {
    return this.caller.ask('moveConversation', { params: this.#at(conversation) });
  }

  async rename(conversation: string, title: string): Promise<PublicConversation> {
    checkName(title, 'title');
    return this.caller.ask('changeConversation', { params: this.#at(conversation), body: { title } });
  }

  async arrange(conversation: string, change: Arrangement): Promise<PublicConversation> {
    const body = checkArrangement(change);
    return this.caller.ask('changeConversation', { params: this.#at(conversation), body });
  }

  async countPutAway(): Promise<number> {
    return (await this.caller.ask('listConversations', { query: { limit: 1 } })).putAway;
  }

  async erase(conversation: string, { sandbox, discard, head }: EraseOptions = {}): Promise<Erased> {
    const params = this.#at(conversation);
    const query = { sandbox, discard, head };
    return this.caller.ask('eraseConversation', { params, query, within: 'longMs', repeatable: false });
  }

  // ── turns ──

  async submit(conversation: string, prompt: unknown, options: SubmitOptions = {}): Promise<Submitted> {
    const { requestId, session, newSession, restore, deliverTo } = options;
    if (deliverTo !== undefined) checkText(deliverTo, 'deliverTo (--deliver-to)');
    const blocks = parsePrompt(prompt);
    for (const id of [session, newSession]) if (id !== undefined) checkText(id, 'session id');
    parseChoices(options);
    const create = typeof options.create === 'object' ? checkedSpec(options.create) : options.create;
    const set = given({ create, restore: restore && parseTurnRestore(restore) });
    const body = { ...options, prompt: blocks, ...set };
    const params = await this.#promptedAt(conversation, options);
    return this.caller.accepted(requestId, (id) =>
      // The history of an adopted session is read first, and the agent may have to be started for that.
      this.caller.ask('submit', {
        params,
        body: { ...body, requestId: id },
        ...(session !== undefined && { within: 'longMs' }),
      }),
    );
  }

  async turn(id: string): Promise<PublicTurn> {
    return this.caller.ask('getTurn', { params: turnIn(id) });
  }

  async answerOf(turn: string, { waitMs, signal }: AnswerOptions = {}) {
    const wait = Math.ceil(checkWait(waitMs) / 1_000);
    return this.caller.ask('answerOf', { params: turnIn(turn), query: { wait }, within: 'longMs', signal });
  }

  async pending({ after, limit }: PendingPage = {}): Promise<PendingTurn[]> {
    const query = { after, limit: checkLimit(limit, 100) };
    return (await this.caller.ask('listPending', { query })).pending;
  }

  async delivered(turn: string): Promise<PublicTurn> {
    return this.caller.ask('setDelivered', { params: turnIn(turn) });
  }

  async told(turn: string, { attempt }: ToldOptions = {}): Promise<PublicTold> {
    return this.caller.ask('told', { params: turnIn(turn), query: { attempt }, within: 'longMs' });
  }

  async turns(conversation: string, page: TurnPage = {}): Promise<TurnView[]> {
    const query = rangeOf(page);
    return (await this.caller.ask('listTurns', { params: this.#at(conversation), query })).turns;
  }

  async outline(conversation: string, page: TurnPage = {}): Promise<TurnOutline[]> {
    const query = rangeOf(page);
    return (await this.caller.ask('listOutline', { params: this.#at(conversation), query })).turns;
  }

  async records(conversation: string, page: TurnPage = {}): Promise<TurnRecord[]> {
    const query = rangeOf(page);
    return (await this.caller.ask('listRecords', { params: this.#at(conversation), query })).records;
  }

  async cancel(turn: string): Promise<PublicTurn> {
    return this.caller.ask('cancel', { params: turnIn(turn) });
  }

  async queue(conversation: string, page: QueuePage = {}): Promise<PublicTurn[]> {
    const query = { after: checkAfter(page.after), limit: checkLimit(page.limit, 100) };
    return (await this.caller.ask('listQueue', { params: this.#at(conversation), query })).queue;
  }

  async requeue(conversation: string, turns: readonly QueueTurn[], { requestId }: { requestId?: string } = {}) {
    const params = this.#at(conversation);
    const body = { turns: parseQueueChanges(turns) };
    return this.caller.accepted(requestId, (id) =>
      this.caller.ask('requeue', { params, body: { ...body, requestId: id } }),
    );
  }

  async retry(
    turn: string,
    { requestId, ...rest }: Pick<SubmitOptions, 'requestId' | 'permissions'> = {},
  ): Promise<Submitted> {
    const params = turnIn(turn);
    return this.caller.accepted(requestId, (id) =>
      this.caller.ask('retry', { params, body: { ...rest, requestId: id } }),
    );
  }

  // ── watching ──

  async *follow(conversation: string, { after, log, signal }: FollowOptions = {}) {
    const query = { after: checkAfter(after), log };
    yield* this.caller.events<PublicEvent>('follow', { params: this.#at(conversation), query }, signal);
  }

  async events(conversation: string, { before, turn, log, limit }: EventPage = {}): Promise<PublicEvent[]> {
    if (before !== undefined) checkBefore(before);
    const asked = { before, log, limit: checkLimit(limit, 100) };
    const query = turn === undefined ? asked : { ...asked, turn: checkTurnNumber(turn) };
    return (await this.caller.ask('listEvents', { params: this.#at(conversation), query })).events;
  }

  async *hints(options: { signal?: AbortSignal } = {}): AsyncGenerator<Hint> {
    for await (const message of this.caller.messages('hints', {}, options.signal)) {
      yield message === RECONNECTED ? { conversationId: null, seq: null } : JSON.parse(message.data);
    }
  }

  async warm(conversation: string, options: { agent?: string; restore?: TurnRestore } = {}) {
    const { agent, restore } = options;
    const body = { agent, ...(restore && { restore: parseTurnRestore(restore) }) };
    return (await this.caller.ask('warm', { params: this.#at(conversation), body, within: 'longMs' })).receipt;
  }

  async changes(conversation: string) {
    return this.caller.ask('changes', { params: this.#at(conversation), within: 'longMs' });
  }

  async keepChanges(conversation: string, keep: Keep) {
    const body = checkKeep(keep);
    return this.caller.ask('keepChanges', {
      params: this.#at(conversation),
      body,
      within: 'longMs',
      repeatable: false,
    });
  }

  async discardChanges(conversation: string) {
    await this.caller.ask('discardChanges', { params: this.#at(conversation), within: 'longMs' });
  }

  async files(conversation: string, options: { match?: string } = {}) {
    const query = { match: checkMatch(options.match) };
    return this.caller.ask('listFiles', { params: this.#at(conversation), query });
  }

  async directories(options: DirectoryOptions = {}) {
    return this.caller.ask('listDirectories', { query: checkDirectories(options) });
  }

  async kill(conversation: string) {
    return (await this.caller.ask('kill', { params: this.#at(conversation), within: 'longMs' })).sessions;
  }

  async show(conversation: string) {
    return this.caller.ask('show', { params: this.#at(conversation), within: 'longMs' });
  }

  async summary(conversation: string) {
    return this.caller.ask('summarise', { params: this.#at(conversation) });
  }

  async sessions(conversation: string) {
    const query = { receipts: false };
    return (await this.caller.ask('listSessions', { params: this.#at(conversation), query })).sessions;
  }

  async receipts(conversation: string) {
    return (await this.caller.ask('listSessions', { params: this.#at(conversation), within: 'longMs' })).receipts;
  }

  async restores(conversation: string, page: TurnPage = {}): Promise<PublicRestore[]> {
    const query = rangeOf(page);
    return (await this.caller.ask('listRestores', { params: this.#at(conversation), query })).restores;
  }

  async permission(id: string): Promise<PublicPermission> {
    return this.caller.ask('getPermission', { params: permissionIn(id) });
  }

  async permissions({ conversation, limit, ...filter }: PermissionFilter = {}): Promise<PublicPermission[]> {
    const there = conversation === undefined ? {} : this.#at(conversation);
    const query = { ...filter, ...there, limit: checkLimit(limit, 100) };
    return (await this.caller.ask('listPermissions', { query })).permissions;
  }

  async answer(permission: string, optionId: string, options: PermissionAnswer = {}): Promise<PublicPermission> {
    const from = checkAnsweredFrom(options.from);
    const body = { optionId, ...(from && { from }) };
    let lost = false;
    const onLost = () => {
      lost = true;
    };
    try {
      return await this.caller.ask('answer', { params: permissionIn(permission), body, onLost });
    } catch (error) {
      // The first answer wins. After a lost reply, it may have been ours.
      const known = lost ? await this.permission(permission) : null;
      if (known?.state === 'answered' && known.optionId === optionId) return known;
      throw error;
    }
  }

  // ── copies, search, the rest ──

  async fork(conversation: string, options: ForkOptions = {}): Promise<PublicConversation> {
    checkDirectory(options.cwd);
    return this.caller.ask('fork', { params: this.#at(conversation), body: options, repeatable: false });
  }

  async export(conversation: string) {
    return this.caller.ask('exportConversation', { params: this.#at(conversation), within: 'longMs' });
  }

  async import(exported: unknown, options: ImportOptions = {}): Promise<PublicConversation> {
    checkDirectory(options.cwd);
    // Checked before it is sent, because it may be large.
    Array.from(importSteps(exported, { agent: options.agent, defaultAgent: () => SCRIPTED, now: 0 }));
    return this.caller.ask('importConversation', {
      body: { exported: Array.isArray(exported) ? asJsonMessages(exported) : exported, ...options },
      within: 'longMs',
      repeatable: false,
    });
  }

  async search(query: string, options: { limit?: number } = {}) {
    const asked = { q: checkText(query, 'search'), limit: checkLimit(options.limit, 20) };
    return (await this.caller.ask('search', { query: asked })).hits;
  }

  async usage(page: Parameters<Engine['usage']>[0] = {}) {
    const { before, ...query } = checkUsagePage(page);
    const last = before && `${before.day}_${before.agent}`;
    return (await this.caller.ask('usage', { query: { ...query, before: last } })).usage;
  }

  async verify(conversation: string, { head }: { head?: string } = {}) {
    if (head !== undefined) checkHead(head);
    return this.caller.ask('verify', { params: this.#at(conversation), query: { head }, within: 'longMs' });
  }

  async agents({ login }: { login?: boolean } = {}) {
    return (await this.caller.ask('listAgents', { query: { login }, within: 'longMs' })).agents;
  }

  /** Ends the connection. The server continues with every accepted turn. */
  async close(): Promise<void> {
    this.caller.close();
  }

  /** For a key that does not fit into a path, `ensure` says why it cannot be a key. */
  async #promptedAt(conversation: string, { create, agent }: SubmitOptions): Promise<{ conversation: string }> {
    try {
      return this.#at(conversation);
    } catch (error) {
      if (!hasCode(error, 'not_found')) throw error;
      if (create === false) throw noSuchConversation(conversation, { isRefused: true });
      const settings = typeof create === 'object' ? create : {};
      const { id } = await this.ensure({ ...given({ agent }), ...settings, key: conversation });
      return { conversation: id };
    }
  }

  #at(idOrKey: string): { conversation: string } {
    return { conversation: checkSegment(idOrKey, noSuchConversation) };
  }
}

/** Checks the settings of a conversation as the embedded engine does. */
function checkedSpec(spec: ConversationSpec) {
  const { key, title, sandbox, cwd, restore } = spec;
  for (const [name, value] of Object.entries({ key, sandbox })) if (value !== undefined) checkKey(value, name);
  if (title !== undefined) checkName(title, 'title');
  checkDirectory(cwd);
  changeChoices({}, spec, null);
  return { ...spec, ...(restore && { restore: parseRestore(restore) }) };
}

/** Checks the page as the embedded engine does. It is sent as it was given. */
function rangeOf(page: TurnPage) {
  const { limit } = checkRange(page);
  return { after: page.after, before: page.before, limit };
}

/** For operations that take as long as a set-up, a command or many files. They are not repeated when no answer comes. */
const LONG = { within: 'longMs', repeatable: false } as const;

/** The sandboxes of a server, over HTTP: the same interface and the same answers as embedded. */
function httpSandboxes(caller: Caller): EngineSandboxes {
  const at = (idOrName: string) => ({ sandbox: checkSegment(idOrName, (text) => noSuch('sandbox', text)) });
  return {
    async list({ limit, before } = {}) {
      const query = { limit: checkLimit(limit, 100), ...given({ before }) };
      return (await caller.ask('listSandboxes', { query })).sandboxes;
    },
    async diskUse() {
      return (await caller.ask('listSandboxes', { query: { limit: 1 } })).diskUse;
    },
    async show(idOrName, { measure } = {}) {
      return caller.ask('showSandbox', { params: at(idOrName), query: { measure }, within: 'longMs' });
    },
    async of(conversation) {
      const params = { conversation: checkSegment(conversation, noSuchConversation) };
      return caller.ask('sandboxOf', { params });
    },
    async open(name) {
      return caller.ask('openSandbox', { body: { name: checkKey(name, 'sandbox') }, ...LONG });
    },
    async exec(idOrName, command) {
      checkCommand(command);
      return caller.ask('execInSandbox', { params: at(idOrName), body: { command: [...command] }, ...LONG });
    },
    async rest(idOrName) {
      return caller.ask('restSandbox', { params: at(idOrName), ...LONG });
    },
    async remove(idOrName, { force } = {}) {
      return caller.ask('removeSandbox', { params: at(idOrName), query: { force }, ...LONG });
    },
  };
}
