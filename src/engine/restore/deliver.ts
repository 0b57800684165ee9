import { createHash, randomBytes } from 'node:crypto';
import type { Delivery, Step } from '../../core/restore/continuity.ts';
import type { RestoreProgress } from '../../core/restore/receipt.ts';
import type { Session } from '../../core/restore/session.ts';
import {
  BudgetFiller,
  budgetFor,
  byteLength,
  estimateTokens,
  renderBlock,
  renderTurn,
} from '../../core/restore/transcript.ts';
import { promptText } from '../../core/turn/content.ts';
import type { TurnRecord } from '../../core/turn/record.ts';
import type { Held } from '../worker/held.ts';
import { type Delivered, NOTHING_DELIVERED, type RestoreRequest, type StepFailure } from './request.ts';
import { isOf } from './told.ts';

/**
 * Everything that the session lacks, as one block before the prompt. Always as text: some agents show an embedded resource
 * to their model after the person's words, or only its address (docs/acp-agents.md). The hash covers the text from mark to mark, marks included.
 */
export async function deliverBlock(
  { rung }: Step,
  { after, unsettled, except }: Extract<Delivery, { what: 'records' }>,
  request: RestoreRequest,
): Promise<Delivered | StepFailure> {
  const { records, rendered, dropped } = await recordsWithin(after, request, except);
  const first = records[0];
  const last = records.at(-1);
  if (first === undefined || last === undefined) {
    // With the policy "auto", a session that gets a part of the history may continue. One that gets nothing is not a restore.
    if (request.settings.policy === 'auto' && after > 0) return { ...NOTHING_DELIVERED, dropped, unsettled };
    const lacking =
      dropped === 1 ? 'the turn that it lacks does not fit' : `none of the ${dropped} turns that it lacks fits`;
    return { failure: `${lacking} into the budget` };
  }
  const text = renderBlock(rendered, { nonce: randomBytes(12).toString('hex'), dropped, unsettled });
  if (rung === 'resume' || rung === 'transcript') await progress(rung, records.length, records.length, request);
  return {
    ...NOTHING_DELIVERED,
    // Some agents put nothing between two blocks.
    preface: [{ type: 'text', text: `${text}\n` }],
    sent: { from: first.n, to: last.n, count: records.length, hash: createHash('sha256').update(text).digest('hex') },
    turns: records.length,
    tokens: estimateTokens(byteLength(text)),
    dropped,
    unsettled,
  };
}

/**
 * Whole turns after `after`, oldest first, as many of the newest as the budget allows. Reads no more than it takes. `except`: a
 * session whose own turns are left out.
 */
export async function recordsWithin(
  after: number,
  request: RestoreRequest,
  except?: Session,
): Promise<{ records: TurnRecord[]; rendered: string[]; dropped: number }> {
  const { held, settings, traits, shrink } = request;
  const { owner, id, head, historyCount } = held.conversation;
  const { store } = held.parts;
  const own = except === undefined ? 0 : historyCount - (await countLacking(except, held));
  const lacking = (after === 0 ? historyCount : await store.countRecordsAfter(owner, id, after)) - own;
  const filler = new BudgetFiller(budgetFor(settings, traits, shrink));
  const records: TurnRecord[] = [];
  for (let upTo = head; upTo > after && !filler.full; ) {
    const page = await store.recordsBefore(owner, id, { upTo, limit: PAGE });
    for (const record of page) {
      if (except !== undefined && isOf(record, except)) continue;
      if (record.n <= after || !filler.offer(render(record))) break;
      records.push(record);
    }
    const oldest = page.at(-1);
    if (oldest === undefined) break;
    upTo = oldest.n - 1;
  }
  return { records: records.reverse(), rendered: filler.turns(), dropped: lacking - records.length };
}

/** How many turns of the history a session was never told. */
async function countLacking({ dropped, watermark }: Session, { parts, conversation }: Held): Promise<number> {
  return dropped + (await parts.store.countRecordsAfter(conversation.owner, conversation.id, watermark));
}

/** Only the beginning of a prompt that was refused as too long: the whole prompt would be refused every time. */
function render(record: TurnRecord): string {
  const said = promptText(record.prompt);
  if (record.failure?.code !== 'too_long' || said.length <= LONGEST_REFUSED) return renderTurn(record);
  const text = `${said.slice(0, LONGEST_REFUSED)}… [it was refused as too long: ${said.length} characters]`;
  return renderTurn({ ...record, prompt: [{ type: 'text', text }] });
}

/** Tells followers how far the restore is. */
export async function progress(
  rung: RestoreProgress['rung'],
  done: number,
  total: number,
  { held, turn }: RestoreRequest,
): Promise<void> {
  const event = { kind: 'restore.progress', turn: turn?.id ?? null, payload: { rung, done, total } } as const;
  await held.lease.write({ write: 'event', event });
}

const PAGE = 100;
const LONGEST_REFUSED = 500;
