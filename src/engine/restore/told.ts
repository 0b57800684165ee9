import { hash } from 'node:crypto';
import type { Session } from '../../core/restore/session.ts';
import type { ToldPart, ToldTurn } from '../../core/restore/told.ts';
import type { Prompt } from '../../core/turn/content.ts';
import { replyText, type TurnRecord } from '../../core/turn/record.ts';
import type { Sent } from '../../core/turn/turn.ts';
import type { AgentSession } from '../../ports/agent.ts';
import { allRecords } from '../reading/views.ts';
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

/** The prompt as the adapter sends it to the agent. */
export function worded(session: AgentSession, content: Prompt): Prompt {
  return session.wording?.(content) ?? content;
}

/** Everything that a session was told, oldest first: by its own turns and, if it began with a replay, by the earlier prompts. */
export async function toldTo(session: Session, held: Held): Promise<ToldTurn[]> {
  const all: TurnRecord[] = [];
  // Turns of other agents may be between its turns. All is read until its first turn; of an adopted session, which has imported turns, all.
  const isAdopted = session.origin === 'adopted';
  const { owner, id, head } = held.conversation;
  for (let upTo = head, own = 0; upTo > 0 && (isAdopted || own < session.turns); ) {
    const page = await held.parts.store.recordsBefore(owner, id, { upTo, limit: PAGE });
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

/** A replay tells a session only the prompt of a record. What it answered to that is not recorded. */
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

/** By number: how the turns of these records were sent. */
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

/** It had the history at its first turn, and no block delivered it: so a replay did, in that turn or in a warm-up before it. */
function beganWithReplay({ origin }: Session, sent: Sent | null): boolean {
  if (sent === null || sent.delivered !== null || origin === 'adopted') return false;
  return sent.rung === 'replay' || sent.rung === 'live' || sent.rung === 'resume';
}

/** Every prompt before the turn `first` that fitted into the budget. */
async function replayed(first: number, { dropped }: Session, held: Held): Promise<ToldTurn[]> {
  const records: TurnRecord[] = [];
  for await (const record of allRecords(held.parts.store, held.conversation)) {
    if (record.n >= first) break;
    records.push(record);
  }
  return records.slice(dropped).map(toldByReplay);
}
