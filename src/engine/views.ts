import type { Conversation } from '../core/conversation.ts';
import { ThroughlineError } from '../core/errors.ts';
import type { ConversationEvent } from '../core/event.ts';
import { inPages } from '../core/pages.ts';
import { replyText, type TurnRecord } from '../core/record.ts';
import type { Session } from '../core/session.ts';
import type { Turn } from '../core/turn.ts';
import type { Agent } from '../ports/agent.ts';
import type { AgentInfo, Bounded, ConversationView, SessionView } from '../ports/engine.ts';
import type { Store } from '../ports/store.ts';
import type { EngineParts } from './parts.ts';
import { Room } from './room.ts';

const PAGE = 500;

/** A whole conversation: every turn with its answer, the lineage, the receipts. */
export async function showConversation(
  store: Store,
  conversation: Conversation,
  { most }: Bounded = {},
): Promise<ConversationView> {
  const room = new Room(most);
  const { owner, id } = conversation;
  const turns: Turn[] = [];
  for await (const turn of inPages<Turn>((last) => store.turns(owner, id, { after: last?.n ?? 0, limit: PAGE }))) {
    room.take(turn);
    turns.push(turn);
  }
  const replies = new Map<number, string>();
  for await (const record of allRecords(store, conversation)) {
    const reply = replyText(record.parts);
    room.take(reply);
    replies.set(record.n, reply);
  }
  return {
    conversation,
    turns: turns.map((turn) => ({ ...turn, reply: replies.get(turn.n) ?? '' })),
    sessions: room.taking(sessionViews(await store.sessions(owner, id))),
    receipts: room.taking(await store.receipts(owner, id)),
  };
}

/** Every record, oldest first. */
export function allRecords(store: Store, { owner, id }: Conversation): AsyncGenerator<TurnRecord> {
  return inPages((last) => store.recordsAfter(owner, id, { after: last?.n ?? 0, limit: PAGE }));
}

/** Every event of a turn. */
export function eventsOfTurn(store: Store, owner: string, turn: string): AsyncGenerator<ConversationEvent> {
  return inPages((last) => store.turnEvents(owner, turn, { after: last?.seq ?? 0, limit: PAGE }));
}

/** In the order in which they were opened, with the agent's ids instead of our references. */
export function sessionViews(sessions: readonly Session[]): SessionView[] {
  const ids = new Map(sessions.map((session) => [session.ref, session.id]));
  return sessions
    .toSorted((a, b) => a.openedAt - b.openedAt || (a.parent === b.ref ? 1 : b.parent === a.ref ? -1 : 0))
    .map(({ ref: _, memo: __, parent, ...rest }) => ({
      ...rest,
      parent: parent === null ? null : (ids.get(parent) ?? null),
    }));
}

/** Probes every configured agent; one that is missing is listed with what is wrong. */
export function listAgents(
  { agents, settings }: Pick<EngineParts, 'agents'> & { settings: Pick<EngineParts['settings'], 'defaultAgent'> },
  { login = false }: { login?: boolean } = {},
): Promise<AgentInfo[]> {
  return Promise.all(
    [...agents].map(async ([name, { agent, adapter }]) => {
      const known = { name, adapter, isDefault: name === settings.defaultAgent };
      return { ...known, ...(await stateOf(agent, login)) };
    }),
  );
}

async function stateOf(agent: Agent, asked: boolean): Promise<Omit<AgentInfo, 'name' | 'adapter' | 'isDefault'>> {
  const late = AbortSignal.timeout(PROBE_MS);
  try {
    const login = asked ? ((await agent.login?.(late)) ?? null) : null;
    const traits = await agent.traits();
    return { where: (await agent.where?.()) ?? null, traits, problem: (await agent.doubt?.()) ?? null, login };
  } catch (error) {
    if (!(error instanceof ThroughlineError)) throw error;
    const said = late.aborted ? `It did not answer within ${PROBE_MS / 1_000} seconds.` : error.message;
    return { where: null, traits: null, problem: error.hint ? `${said} ${error.hint}` : said, login: null };
  }
}

const PROBE_MS = 30_000;
