import { hash } from 'node:crypto';
import type { Session } from '../../core/restore/session.ts';
import type { ToldPart, ToldTurn } from '../../core/restore/told.ts';
import type { Prompt } from '../../core/turn/content.ts';
import { replyText, type TurnRecord } from '../../core/turn/record.ts';
import type { Sent } from '../../core/turn/turn.ts';
import type { AgentSession } from '../../ports/agent.ts';
import type { Held } from '../worker/held.ts';

const PAGE = 100;

export function promptTold(turn: number, content: Prompt): ToldPart & { as: 'prompt' } {
  return { as: 'prompt', turn, content, sha256: hash('sha256', JSON.stringify(content), 'hex') };
}

/** Agents read their files as UTF-8. */
export function transcriptTold(file: string | Uint8Array): ToldPart {
  const text = typeof file === 'string' ? file : new TextDecoder('utf-8', { ignoreBOM: true }).decode(file);
  return { as: 'transcript', text, sha256: hash('sha256', text, 'hex') };
}

/** A prompt as the session passes it on. */
export function worded(session: AgentSession, content: Prompt): Prompt {
  return session.wording?.(content) ?? content;
}

/** All that a session was told, oldest first: by its own turns and, where it began with a replay, by the prompts before. */
export async function toldTo(session: Session, held: Held): Promise<ToldTurn[]> {
  const all: TurnRecord[] = [];
  // Turns of another agent may be between its turns. Before its first turn, no turn can be its own, unless it brought some.
  const brought = session.origin === 'adopted';
  for (let upTo = held.conversation.head, own = 0; upTo > 0 && (brought || own < session.turns); ) {
    const page = await held.parts.store.recordsBefore(held.conversation.owner, held.conversation.id, {
      upTo,
      limit: PAGE,
    });
    const oldest = page.at(-1);
    if (oldest === undefined) break;
    all.push(...page);
    own += page.filter((record) => isOf(record, session)).length;
    upTo = oldest.n - 1;
  }
  const records = all.reverse().filter((record) => isOf(record, session));
  const sent = await sentWith(records, held);
  const turns = records.map((record) => toldBy(record, sent.get(record.n) ?? null));
  const first = records[0];
  if (first === undefined || !beganWithReplay(session, sent.get(first.n) ?? null)) return turns;
  return [...(await replayed(first.n, session, held)), ...turns];
}

/** What replaying a record tells a session: the prompt. What it answered this time is no part of the record. */
export function toldByReplay({ n, prompt }: TurnRecord): ToldTurn {
  return { n, prompt, block: null, replayed: true, reply: null, certain: true };
}

function isOf(record: TurnRecord, { id, agent }: Session): boolean {
  return record.sessionId === id && record.agent === agent;
}

function toldBy({ n, prompt, parts, outcome }: TurnRecord, sent: Sent | null): ToldTurn {
  const certain = outcome === 'completed';
  const { hash: block = null, images = 0 } = sent?.delivered ?? {};
  return { n, prompt, block, images, reply: certain ? replyText(parts) : null, certain };
}

async function sentWith(records: readonly TurnRecord[], held: Held): Promise<Map<number, Sent | null>> {
  const { owner, id } = held.conversation;
  const sent = new Map<number, Sent | null>();
  const last = records.at(-1)?.n ?? 0;
  for (let after = (records[0]?.n ?? 1) - 1; after < last; ) {
    const turns = await held.parts.store.turns(owner, id, { after, limit: PAGE });
    if (turns.length === 0) break;
    for (const turn of turns) sent.set(turn.n, turn.sent);
    after = turns.at(-1)?.n ?? last;
  }
  return sent;
}

/** It knew the history at its first turn, and no block brought it: a replay did, in that turn or in a warm-up before it. */
function beganWithReplay({ origin }: Session, sent: Sent | null): boolean {
  if (sent === null || sent.delivered !== null || origin === 'adopted') return false;
  return sent.rung === 'replay' || sent.rung === 'live' || sent.rung === 'resume';
}

/** Every earlier prompt that fitted into the budget. */
async function replayed(first: number, { dropped }: Session, held: Held): Promise<ToldTurn[]> {
  const { owner, id } = held.conversation;
  const records: TurnRecord[] = [];
  for (let upTo = first - 1; upTo > 0; ) {
    const page = await held.parts.store.recordsBefore(owner, id, { upTo, limit: PAGE });
    const oldest = page.at(-1);
    if (oldest === undefined) break;
    records.push(...page);
    upTo = oldest.n - 1;
  }
  return records
    .slice(0, Math.max(0, records.length - dropped))
    .reverse()
    .map(toldByReplay);
}
