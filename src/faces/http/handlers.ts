import { checkPlace } from '../../core/event.ts';
import type { PublicConversation } from '../../core/public/conversation.ts';
import type { Engine } from '../../ports/engine.ts';
import { MEBIBYTE } from '../../wire/operations/operation.ts';
import { Cursor } from '../../wire/parameters.ts';
import type { OperationName } from '../../wire/routes.ts';
import { checkScope } from './access/authenticate.ts';
import { checkMachine, type Handler } from './call.ts';
import { TASK_HANDLERS } from './task-handlers.ts';

/** The largest answer. It is encoded in one go, and all other requests wait meanwhile. */
const MOST_AT_ONCE = 64 * MEBIBYTE;

/** What each operation does with the engine. Every operation has a handler, or this does not compile. */
export const HANDLERS: { [N in OperationName]: Handler<N> } = {
  // ── conversations ──
  async listConversations({ engine, query: { q, session, ...page } }) {
    if (q !== undefined) return { conversations: await withWords(engine, q, page.limit), next: null };
    if (session !== undefined) return { conversations: await engine.list({ ...page, session }), next: null };
    const conversations = await engine.list(page);
    const before = conversations.at(-1);
    // A short page may not be the last one.
    const [more] = before === undefined ? [] : await engine.list({ before, limit: 1 });
    return {
      conversations,
      next: before && more ? Cursor.encode({ updatedAt: before.updatedAt, id: before.id }) : null,
    };
  },
  async ensureConversation({ engine, principal, body }) {
    checkMachine(principal, body);
    return engine.ensure(body);
  },
  getConversation: ({ engine, params }) => engine.conversation(params.conversation),
  renameConversation: ({ engine, params, body }) => engine.rename(params.conversation, body.title),
  eraseConversation: ({ engine, params, query }) => engine.erase(params.conversation, query),
  summarise: ({ engine, params }) => engine.summary(params.conversation),
  show: ({ engine, params }) => engine.show(params.conversation, { most: MOST_AT_ONCE }),
  async listSessions({ engine, params: { conversation } }) {
    const half = { most: MOST_AT_ONCE / 2 };
    const sessions = await engine.sessions(conversation, half);
    return { sessions, receipts: await engine.receipts(conversation, half) };
  },
  async warm({ engine, params, body }) {
    return { receipt: await engine.warm(params.conversation, body) };
  },
  async fork({ engine, principal, params, body }) {
    checkMachine(principal, body);
    return engine.fork(params.conversation, body);
  },
  exportConversation: ({ engine, params }) => engine.export(params.conversation, { most: MOST_AT_ONCE }),
  async importConversation({ engine, principal, body: { exported, ...options } }) {
    checkMachine(principal, options);
    return engine.import(exported, options);
  },
  verify: async ({ engine, params, query }) => engine.verify(params.conversation, query),

  // ── turns ──
  async submit({ engine, principal, params, body: { prompt, ...options } }) {
    checkMachine(principal, options);
    return engine.submit(params.conversation, prompt, options);
  },
  async listTurns({ engine, params, query }) {
    return { turns: await engine.turns(params.conversation, query) };
  },
  getTurn: ({ engine, params }) => engine.turn(params.turn),
  answerOf({ engine, params, query: { wait = 0 }, waiting }) {
    if (wait === 0) return engine.answerOf(params.turn);
    return waiting((signal) => engine.answerOf(params.turn, { waitMs: wait * 1_000, signal }));
  },
  cancel: ({ engine, params }) => engine.cancel(params.turn),
  retry: ({ engine, params, body }) => engine.retry(params.turn, body),

  // ── permissions ──
  async listPermissions({ engine, query }) {
    return { permissions: await engine.permissions(query) };
  },
  getPermission: ({ engine, params }) => engine.permission(params.permission),
  answer: ({ engine, params, body }) => engine.answer(params.permission, body.optionId),

  // ── streams: what cannot be followed is refused before the stream begins ──
  async follow({ engine, params, query, lastEventId }) {
    const found = await engine.conversation(params.conversation);
    // A browser that reconnects repeats the address and adds the header: the header is newer.
    const after = lastEventId ?? query.after ?? 0;
    checkPlace({ after, log: query.log }, found);
    return { numbered: true, log: found.logId, values: (signal) => engine.follow(found.id, { after, signal }) };
  },
  async hints({ engine }) {
    return { numbered: false, values: (signal) => engine.hints({ signal }) };
  },

  ...TASK_HANDLERS,

  // ── the rest ──
  newLink: async ({ principal, newLink }) => newLink(principal.owner),
  getHealth: async ({ health }) => health(),
  whoAmI: async ({ principal: { owner, by, scopes } }) => ({ owner, by, scopes: [...scopes] }),
  search: async ({ engine, query: { q, ...options } }) => ({ hits: await engine.search(q, options) }),
  usage: async ({ engine, query }) => ({ usage: await engine.usage(query) }),
  async listAgents({ engine, principal, query }) {
    if (query.login) checkScope(principal, 'admin', 'Asking for logins');
    return { agents: await engine.agents(query) };
  },
};

async function withWords(engine: Engine, words: string, limit = 20): Promise<PublicConversation[]> {
  const hits = await engine.search(words, { limit });
  return Promise.all([...new Set(hits.map((hit) => hit.conversationId))].map((id) => engine.conversation(id)));
}
