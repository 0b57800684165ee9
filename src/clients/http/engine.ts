import { checkAfter, checkLimit, checkText } from '../../core/arguments.ts';
import { parsePrompt } from '../../core/content.ts';
import type { Conversation } from '../../core/conversation.ts';
import { ThroughlineError } from '../../core/errors.ts';
import type { ConversationEvent } from '../../core/event.ts';
import { checkName } from '../../core/names.ts';
import type { Permission } from '../../core/permission.ts';
import { parseExport } from '../../core/portable.ts';
import { parseRestore, type RestoreOverride } from '../../core/restore-settings.ts';
import type { Turn } from '../../core/turn.ts';
import type { ConversationSpec, Engine, ForkOptions, Hint, SubmitOptions, Submitted } from '../../ports/engine.ts';
import { OWNER_HEADER } from '../../wire/operations/operation.ts';
import type { AnswerOf, OPERATIONS, OperationName } from '../../wire/operations.ts';
import { checkDirectory, checkSegment, noConversation, permissionIn, turnIn } from './addresses.ts';
import type { Connection, Request } from './connection.ts';
import { AGAIN, messages } from './event-stream.ts';
import { ROUTES } from './routes.ts';

type Answer<N extends OperationName> = AnswerOf<(typeof OPERATIONS)[N]>;

/** Who the server takes us for. */
export interface Identity {
  readonly owner: string;
  /** Sent with every request. */
  readonly token: string | null;
  /** Whether it may act for other owners. */
  readonly forOthers: boolean;
}

interface Asked {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: object;
  readonly long?: boolean;
  /** Left out: yes. */
  readonly repeatable?: boolean;
  readonly onLost?: () => void;
}

/**
 * The engine of a server, over HTTP: the same interface and the same answers as an embedded one. What callers give is checked
 * here as it is there, so that faults read the same. A prompt without a request id is given one, so that it can be repeated
 * when the reply was lost.
 */
export class HttpEngine implements Engine {
  readonly owner: string;
  readonly #connection: Connection;
  readonly #identity: Identity;

  constructor(connection: Connection, identity: Identity) {
    this.owner = identity.owner;
    this.#connection = connection;
    this.#identity = identity;
  }

  as(owner: string, by?: string): Engine {
    checkText(owner, 'owner');
    if (by !== undefined) {
      throw new ThroughlineError('refused', 'Who acts is told to a server by its token or key, and by nothing else.');
    }
    if (owner !== this.owner && !this.#identity.forOthers) {
      throw new ThroughlineError('refused', `This key acts for "${this.owner}" alone, and not for "${owner}".`, {
        hint: 'Only the token of the data home acts for others; or use a key of theirs.',
      });
    }
    return new HttpEngine(this.#connection, { ...this.#identity, owner });
  }

  // ── conversations ──

  async ensure(spec: ConversationSpec): Promise<Conversation> {
    const { key, title, sandbox, cwd, restore } = spec;
    for (const [name, value] of Object.entries({ key, title, sandbox })) {
      if (value !== undefined) checkName(value, name);
    }
    checkDirectory(cwd);
    const body = { ...spec, ...(restore && { restore: parseRestore(restore) }) };
    // Without a key, asking twice would make two.
    return this.#ask('ensureConversation', { body, repeatable: key !== undefined });
  }

  async conversation(idOrKey: string): Promise<Conversation> {
    return this.#ask('getConversation', { params: await this.#at(idOrKey) });
  }

  async list(page: Parameters<Engine['list']>[0] = {}): Promise<Conversation[]> {
    const { before } = page;
    const limit = checkLimit(page.limit, 50);
    const query = { limit, before: before && `${before.updatedAt}_${before.id}` };
    return (await this.#ask('listConversations', { query })).conversations;
  }

  async rename(conversation: string, title: string): Promise<Conversation> {
    checkName(title, 'title');
    return this.#ask('renameConversation', { params: await this.#at(conversation), body: { title } });
  }

  async erase(conversation: string): Promise<void> {
    await this.#ask('eraseConversation', { params: await this.#at(conversation), repeatable: false });
  }

  // ── turns ──

  async submit(conversation: string, prompt: unknown, options: SubmitOptions = {}): Promise<Submitted> {
    const { requestId, session, restore } = options;
    const blocks = parsePrompt(prompt);
    if (session !== undefined) checkText(session, 'session id');
    const body = { ...options, prompt: blocks, ...(restore && { restore: parseRestore(restore) }) };
    const params = await this.#at(conversation);
    return this.#accepted(requestId, (id) => this.#ask('submit', { params, body: { ...body, requestId: id } }));
  }

  async turn(id: string): Promise<Turn> {
    return this.#ask('getTurn', { params: turnIn(id) });
  }

  async answerOf(turn: string) {
    return this.#ask('answerOf', { params: turnIn(turn) });
  }

  async turns(conversation: string, page: { after?: number; limit?: number } = {}): Promise<Turn[]> {
    const query = { after: checkAfter(page.after), limit: checkLimit(page.limit, 100) };
    return (await this.#ask('listTurns', { params: await this.#at(conversation), query })).turns;
  }

  async cancel(turn: string): Promise<Turn> {
    return this.#ask('cancel', { params: turnIn(turn) });
  }

  async retry(turn: string, { requestId }: { requestId?: string } = {}): Promise<Submitted> {
    const params = turnIn(turn);
    return this.#accepted(requestId, (id) => this.#ask('retry', { params, body: { requestId: id } }));
  }

  // ── watching ──

  async *follow(
    conversation: string,
    options: { after?: number; signal?: AbortSignal } = {},
  ): AsyncGenerator<ConversationEvent> {
    const query = { after: checkAfter(options.after) };
    const request = this.#request('follow', { params: await this.#at(conversation), query });
    for await (const message of messages(this.#connection, request, options.signal)) {
      if (message !== AGAIN) yield JSON.parse(message.data);
      if (options.signal?.aborted) return;
    }
  }

  async *hints(options: { signal?: AbortSignal } = {}): AsyncGenerator<Hint> {
    const request = this.#request('hints', {});
    for await (const message of messages(this.#connection, request, options.signal)) {
      yield message === AGAIN ? { conversation: null, seq: null } : JSON.parse(message.data);
    }
  }

  async warm(conversation: string, options: { agent?: string; restore?: RestoreOverride } = {}) {
    const { agent, restore } = options;
    const body = { agent, ...(restore && { restore: parseRestore(restore) }) };
    return (await this.#ask('warm', { params: await this.#at(conversation), body, long: true })).receipt;
  }

  async show(conversation: string) {
    return this.#ask('show', { params: await this.#at(conversation), long: true });
  }

  async summary(conversation: string) {
    return this.#ask('summarise', { params: await this.#at(conversation) });
  }

  async sessions(conversation: string) {
    return (await this.#ask('listSessions', { params: await this.#at(conversation) })).sessions;
  }

  async receipts(conversation: string) {
    return (await this.#ask('listSessions', { params: await this.#at(conversation) })).receipts;
  }

  async permissions(filter: { conversation?: string; open?: boolean } = {}): Promise<Permission[]> {
    const { conversation, open } = filter;
    const query = { ...(conversation !== undefined && (await this.#at(conversation))), open };
    return (await this.#ask('listPermissions', { query })).permissions;
  }

  async answer(permission: string, optionId: string): Promise<Permission> {
    let lost = false;
    const onLost = () => {
      lost = true;
    };
    try {
      return await this.#ask('answer', { params: permissionIn(permission), body: { optionId }, onLost });
    } catch (error) {
      // The first answer wins. When a reply was lost, it may have been ours.
      const known = lost ? (await this.permissions()).find(({ id }) => id === permission) : undefined;
      if (known?.state === 'answered' && known.optionId === optionId) return known;
      throw error;
    }
  }

  // ── copies, search, the rest ──

  async fork(conversation: string, options: ForkOptions = {}): Promise<Conversation> {
    checkDirectory(options.cwd);
    return this.#ask('fork', { params: await this.#at(conversation), body: options, repeatable: false });
  }

  async export(conversation: string) {
    return this.#ask('exportConversation', { params: await this.#at(conversation), long: true });
  }

  async import(exported: unknown, options: { key?: string; cwd?: string } = {}): Promise<Conversation> {
    checkDirectory(options.cwd);
    parseExport(exported);
    return this.#ask('importConversation', { body: { exported, ...options }, long: true, repeatable: false });
  }

  async search(query: string, options: { limit?: number } = {}) {
    const asked = { q: checkText(query, 'search'), limit: checkLimit(options.limit, 20) };
    return (await this.#ask('search', { query: asked })).hits;
  }

  async usage({ since }: { since?: string } = {}) {
    return (await this.#ask('usage', { query: { since } })).usage;
  }

  async verify(conversation: string) {
    return (await this.#ask('verify', { params: await this.#at(conversation), long: true })).broken;
  }

  async agents({ login }: { login?: boolean } = {}) {
    return (await this.#ask('listAgents', { query: { login }, long: true })).agents;
  }

  /** Ends the connection. The server goes on, with every turn that it has accepted. */
  async close(): Promise<void> {
    this.#connection.close();
  }

  // ── helpers ──

  /** Repeated after a lost reply it is the same turn, which was then not known before to whoever asks. */
  async #accepted(given: string | undefined, ask: (requestId: string) => Promise<Submitted>): Promise<Submitted> {
    if (given !== undefined) return ask(checkText(given, 'request id'));
    return { ...(await ask(crypto.randomUUID())), duplicate: false };
  }

  /** A path cannot hold a name of dots alone: such a conversation is found by looking through all of them. */
  async #at(idOrKey: string): Promise<{ conversation: string }> {
    if (idOrKey !== '.' && idOrKey !== '..') return { conversation: checkSegment(idOrKey, noConversation) };
    for (let page = await this.list({ limit: 1_000 }); page.length > 0; ) {
      const found = page.find(({ key }) => key === idOrKey);
      if (found !== undefined) return { conversation: found.id };
      const { updatedAt, id } = page.at(-1) as Conversation;
      page = await this.list({ limit: 1_000, before: { updatedAt, id } });
    }
    throw noConversation(idOrKey);
  }

  async #ask<N extends OperationName>(name: N, asked: Asked): Promise<Answer<N>> {
    return (await this.#connection.ask(this.#request(name, asked))) as Answer<N>;
  }

  #request(name: OperationName, { params = {}, query = {}, long, repeatable = true, ...rest }: Asked): Request {
    const { token, owner, forOthers } = this.#identity;
    const { method, path } = ROUTES[name];
    const search = new URLSearchParams();
    for (const [field, value] of Object.entries(query)) if (value !== undefined) search.set(field, String(value));
    return {
      method,
      path:
        path.replaceAll(/\{(\w+)\}/g, (_, field: string) => encodeURIComponent(params[field] ?? '')) +
        (search.size > 0 ? `?${search}` : ''),
      headers: {
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(forOthers && { [OWNER_HEADER]: encodeURIComponent(owner) }),
      },
      withinMs: long ? this.#connection.timing.longMs : undefined,
      repeatable,
      ...rest,
    };
  }
}
