import { checkUnfiltered } from '../../core/conversation.ts';
import { errorOf, noSuch } from '../../core/errors.ts';
import { checkEventNumber } from '../../core/event.ts';
import { holderAtServer } from '../../core/process.ts';
import type { PublicConversation } from '../../core/public/conversation.ts';
import { checkFeeds } from '../../core/public/live-frame.ts';
import type { Engine } from '../../ports/engine.ts';
import type { ClientTracker } from '../../ports/tracker.ts';
import { MEBIBYTE } from '../../wire/operations/operation.ts';
import { Cursor } from '../../wire/parameters.ts';
import type { OperationName } from '../../wire/routes.ts';
import { checkScope } from './access/authenticate.ts';
import { checkChoices, checkMachine, type Handler } from './call.ts';
import { Refusal } from './refusal.ts';
import { TASK_HANDLERS } from './task-handlers.ts';

/** The largest answer, in bytes. */
const MOST_AT_ONCE = 64 * MEBIBYTE;

/** What each operation does with the engine. Every operation has a handler, or this does not compile. */
export const HANDLERS: { [N in OperationName]: Handler<N> } = {
  // ── conversations ──
  async listConversations({ engine, query: { q, session, ...page } }) {
    const putAway = await engine.countPutAway();
    if (q !== undefined) {
      checkUnfiltered('q', page);
      return { conversations: await withWords(engine, q, page.limit), next: null, putAway };
    }
    if (session !== undefined) return { conversations: await engine.list({ ...page, session }), next: null, putAway };
    const conversations = await engine.list(page);
    const before = conversations.at(-1);
    // A short page may not be the last one.
    const [more] = before === undefined ? [] : await engine.list({ ...page, before, limit: 1 });
    return {
      conversations,
      next: before && more ? Cursor.encode({ updatedAt: before.updatedAt, id: before.id }) : null,
      putAway,
    };
  },
  async ensureConversation({ engine, principal, body }) {
    checkMachine(principal, body);
    checkChoices(principal, body);
    return engine.ensure(body);
  },
  getConversation: ({ engine, params }) => engine.conversation(params.conversation),
  moveConversation: ({ engine, params }) => engine.move(params.conversation),
  async changeConversation({ engine, params: { conversation }, body: { title, ...arrangement } }) {
    const arranges = Object.keys(arrangement).length > 0;
    if (title === undefined) return engine.arrange(conversation, arrangement);
    const renamed = await engine.rename(conversation, title);
    return arranges ? engine.arrange(conversation, arrangement) : renamed;
  },
  eraseConversation: ({ engine, params, query }) => engine.erase(params.conversation, query),
  async summarise({ engine, params }) {
    const { lock, ...summary } = await engine.summary(params.conversation);
    return { ...summary, lock: lock && { ...lock, holder: holderAtServer(lock.holder) } };
  },
  show: ({ engine, params }) => engine.show(params.conversation, { most: MOST_AT_ONCE }),
  async listSessions({ engine, params: { conversation }, query: { receipts = true } }) {
    const half = { most: MOST_AT_ONCE / 2 };
    const sessions = await engine.sessions(conversation, half);
    return { sessions, receipts: receipts ? await engine.receipts(conversation, half) : [] };
  },
  async warm({ engine, params, body }) {
    return { receipt: await engine.warm(params.conversation, body) };
  },
  async kill({ engine, params }) {
    return { sessions: await engine.kill(params.conversation) };
  },
  changes: ({ engine, params }) => engine.changes(params.conversation),
  keepChanges: ({ engine, params, body }) => engine.keepChanges(params.conversation, body),
  async discardChanges({ engine, params }) {
    await engine.discardChanges(params.conversation);
    return { discarded: params.conversation };
  },
  listFiles: ({ engine, params, query }) => engine.files(params.conversation, query),
  listDirectories: ({ engine, query }) => engine.directories(query),
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
    for (const given of [options, typeof options.create === 'object' ? options.create : {}]) {
      checkMachine(principal, given);
      checkChoices(principal, given);
    }
    return engine.submit(params.conversation, prompt, options);
  },
  async listTurns({ engine, params, query }) {
    return { turns: await engine.turns(params.conversation, query) };
  },
  async listOutline({ engine, params, query }) {
    return { turns: await engine.outline(params.conversation, query) };
  },
  async listRecords({ engine, params, query }) {
    return { records: await engine.records(params.conversation, query) };
  },
  async listRestores({ engine, params, query }) {
    return { restores: await engine.restores(params.conversation, query) };
  },
  async listQueue({ engine, params, query }) {
    return { queue: await engine.queue(params.conversation, query) };
  },
  requeue: ({ engine, params, body: { turns, ...options } }) => engine.requeue(params.conversation, turns, options),
  getTurn: ({ engine, params }) => engine.turn(params.turn),
  answerOf({ engine, params, query: { wait = 0 }, waiting }) {
    if (wait === 0) return engine.answerOf(params.turn);
    return waiting((signal) => engine.answerOf(params.turn, { waitMs: wait * 1_000, signal }));
  },
  async listPending({ engine, query }) {
    return { pending: await engine.pending(query) };
  },
  setDelivered: ({ engine, params }) => engine.delivered(params.turn),
  told: ({ engine, params, query }) => engine.told(params.turn, { ...query, most: MOST_AT_ONCE }),
  cancel: ({ engine, params }) => engine.cancel(params.turn),
  retry: ({ engine, params, body }) => engine.retry(params.turn, body),

  // ── permissions ──
  async listPermissions({ engine, query }) {
    return { permissions: await engine.permissions(query) };
  },
  getPermission: ({ engine, params }) => engine.permission(params.permission),
  answer: ({ engine, params, body }) => engine.answer(params.permission, body.optionId, { from: body.from }),

  async listEvents({ engine, params, query }) {
    return { events: await engine.events(params.conversation, query) };
  },

  // ── streams: what cannot be followed is refused before the stream begins ──
  async follow({ engine, params, query, lastEventId }) {
    const found = await engine.conversation(params.conversation);
    // A browser that reconnects repeats the address and adds the header: the header is newer.
    const after = lastEventId ?? query.after ?? 0;
    checkEventNumber({ after, log: query.log }, found);
    return { numbered: true, log: found.logId, values: (signal) => engine.follow(found.id, { after, signal }) };
  },
  async hints({ engine }) {
    return { numbered: false, values: (signal) => engine.hints({ signal }) };
  },
  async openStream({ engine, board, streams, body, health }) {
    checkFeeds(body.feeds);
    // A stream that is opened and ends at once would look like a working connection.
    const gone = health().reasons.find(({ code }) => code === 'storage_gone');
    if (gone !== undefined) throw errorOf(gone);
    return { numbered: false, values: (signal) => streams.open(engine, board, body.feeds, signal) };
  },
  async setFeeds({ engine, streams, params, body }) {
    return { feeds: streams.set(engine.owner, params.stream, checkFeeds(body.feeds)) };
  },

  ...TASK_HANDLERS,

  // ── sandboxes ──
  async listSandboxes({ engine, query }) {
    const { sandboxes } = engine;
    return { sandboxes: await sandboxes.list(query), diskUse: await sandboxes.diskUse() };
  },
  async showSandbox({ engine, principal, params, query }) {
    if (query.measure) checkScope(principal, 'prompt', 'Measuring a sandbox');
    return engine.sandboxes.show(params.sandbox, query);
  },
  openSandbox: ({ engine, body }) => engine.sandboxes.open(body.name),
  restSandbox: ({ engine, params }) => engine.sandboxes.rest(params.sandbox),
  removeSandbox: ({ engine, params, query }) => engine.sandboxes.remove(params.sandbox, query),
  execInSandbox: ({ engine, params, body }) => engine.sandboxes.exec(params.sandbox, body.command),
  sandboxOf: ({ engine, params }) => engine.sandboxes.of(params.conversation),

  // ── tracker: sessions are only names here, and no agent is started, so they do not need `admin` ──
  trackRequest({ tracker, body: { requestId, agentId, sessionId, holder, waitMs = 0, ...options }, waiting }) {
    const track = (how: object) =>
      trackerFor(tracker, holder).trackRequest(requestId, agentId, sessionId, { ...options, ...how });
    return waitMs === 0 ? track({}) : waiting((signal) => track({ waitMs, signal }));
  },
  async getTrackedRequest({ tracker, params: { request } }) {
    const found = await trackerFor(tracker, NOBODY).getRequest(request);
    if (found === null) throw noSuch('tracked request', request);
    return found;
  },
  updateTrackedSession: async ({ tracker, params, body: { holder, sessionId } }) =>
    trackerFor(tracker, holder).updateRequestSession(params.request, sessionId),
  renewTracked: async ({ tracker, params, body }) => trackerFor(tracker, body.holder).renewRequest(params.request),
  releaseTracked: async ({ tracker, params, body }) => trackerFor(tracker, body.holder).releaseRequest(params.request),
  completeTracked: async ({ tracker, params, body: { holder, ...done } }) =>
    trackerFor(tracker, holder).completeRequest(params.request, done),
  failTracked: async ({ tracker, params, body: { holder, ...done } }) =>
    trackerFor(tracker, holder).failRequest(params.request, done),
  async getTrackedAgent({ tracker, params: { agent } }) {
    const all = trackerFor(tracker, NOBODY);
    const [sessions, lock] = await Promise.all([all.sessionHistory(agent), all.lockStatus(agent)]);
    if (sessions.length === 0 && lock === null) throw noSuch('tracked agent', agent);
    return { agentId: agent, sessionId: sessions.at(-1) ?? null, sessionIds: sessions, lock };
  },
  async getTrackedSession({ tracker, params: { session } }) {
    const found = await trackerFor(tracker, NOBODY).getSession(session);
    if (found === null) throw noSuch('tracked session', session);
    return found;
  },

  // ── the rest ──
  newLink: async ({ body, newLink }) => newLink(body),
  async getHealth({ health, insight, principal, query }) {
    if (!query.details || insight === null) return health();
    const [version, known] = [insight.version, await insight.look(principal.owner)];
    return { ...health(), details: { version, ...known } };
  },
  async examine({ insight }) {
    if (insight === null) throw new Refusal('not_found', 'This server has no doctor.');
    return { findings: await insight.examine() };
  },
  async whoAmI({ principal: { owner, by, scopes, owners, expiresAt }, isOperator, command }) {
    return { owner, by, scopes: [...scopes], owners, isOperator, command: isOperator ? command : null, expiresAt };
  },
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

/** The holder for calls that only read. */
const NOBODY = 'nobody';

function trackerFor(tracker: ((holder: string) => ClientTracker) | null, holder: string): ClientTracker {
  if (tracker !== null) return tracker(holder);
  throw new Refusal('not_found', 'This server does not track requests.');
}
