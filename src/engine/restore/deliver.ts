import { createHash, randomBytes } from 'node:crypto';
import type { Delivery } from '../../core/restore/continuity.ts';
import { budgetFor, estimateTokens, type FittedHistory, HistoryFitter, IMAGE_TOKENS } from '../../core/restore/fit.ts';
import type { RestoreProgress } from '../../core/restore/receipt.ts';
import { whenNothingFits } from '../../core/restore/restore-settings.ts';
import type { Session } from '../../core/restore/session.ts';
import { renderBlock, renderTurns } from '../../core/restore/transcript.ts';
import { byteLength } from '../../core/turn/shorten.ts';
import type { Write } from '../../ports/store/writes.ts';
import type { Held } from '../worker/held.ts';
import { type Delivered, NOTHING_DELIVERED, type RestoreRequest, type StepFailure } from './request.ts';

/**
 * Renders everything that the session lacks as one block before the prompt. Always as text: some agents put an embedded resource after the
 * prompt, or give their model only its address (docs/acp-agents.md). Images follow the block as images. The hash covers the text from
 * mark to mark, marks included.
 */
export async function deliverBlock(
  { after, unsettled, except }: Extract<Delivery, { what: 'records' }>,
  request: RestoreRequest,
): Promise<Delivered | StepFailure> {
  const { records, dropped, omitted } = await recordsWithin(after, request, except);
  const first = records[0];
  const last = records.at(-1);
  if (first === undefined || last === undefined) {
    // With the policy "auto", a session that has a part of the history may continue. One that has nothing is not restored.
    if (request.settings.policy === 'auto' && after > 0) return { ...NOTHING_DELIVERED, dropped, unsettled };
    return nothingFits(dropped, request);
  }
  const { turns, images } = renderTurns(records);
  const nonce = nonceFor(turns);
  const text = renderBlock(turns, { nonce, dropped, images: images.length, unsettled });
  const hash = createHash('sha256').update(text).digest('hex');
  return {
    ...NOTHING_DELIVERED,
    // Some agents join two blocks without anything between them.
    preface: [{ type: 'text', text: `${text}\n` }, ...images],
    sent: { from: first.n, to: last.n, count: records.length, hash, images: images.length },
    turns: records.length,
    tokens: estimateTokens(byteLength(text)) + images.length * IMAGE_TOKENS,
    dropped,
    omitted,
    images: images.length,
    unsettled,
  };
}

/** A random value that is in none of the turns. */
function nonceFor(turns: readonly string[]): string {
  for (;;) {
    const nonce = randomBytes(12).toString('hex');
    if (!turns.some((turn) => turn.includes(nonce))) return nonce;
  }
}

/** For a budget that is smaller than one shortened turn. */
export function nothingFits(lacking: number, { settings, shrink }: RestoreRequest): StepFailure {
  const turns =
    lacking === 1 ? 'the turn that it lacks does not fit' : `none of the ${lacking} turns that it lacks fits`;
  return { failure: `${turns} into the budget, not even shortened`, hint: whenNothingFits(settings, shrink) };
}

/**
 * Turns after `after`, oldest first: as many of the newest as the budget allows. Reads no more than these. `except`: an adopted session,
 * whose own turns, up to its watermark, are left out.
 */
export async function recordsWithin(
  after: number,
  request: RestoreRequest,
  except?: Session,
): Promise<FittedHistory & { readonly dropped: number }> {
  const { held, settings, traits, shrink } = request;
  const { owner, id, head, historyCount } = held.conversation;
  const { store } = held.parts;
  const own = except === undefined ? 0 : historyCount - (await countLacking(except, held));
  const lacking = (after === 0 ? historyCount : await store.countRecordsAfter(owner, id, after)) - own;
  // An agent that failed with images of earlier turns gets the turns without them.
  const fitter = new HistoryFitter(budgetFor(settings, traits, shrink), lacking, traits.images && shrink === 0);
  for (let upTo = head; upTo > after && !fitter.full; ) {
    const page = await store.recordsBefore(owner, id, { upTo, limit: PAGE });
    for (const record of page) {
      if (except !== undefined && record.n <= except.watermark && record.n > except.watermark - own) continue;
      if (record.n <= after || !fitter.offer(record)) break;
    }
    const oldest = page.at(-1);
    if (oldest === undefined) break;
    upTo = oldest.n - 1;
  }
  const fitted = fitter.fitted();
  return { ...fitted, dropped: lacking - fitted.records.length };
}

/** How many turns of the history a session was never told. */
async function countLacking({ dropped, watermark }: Session, { parts, conversation }: Held): Promise<number> {
  return dropped + (await parts.store.countRecordsAfter(conversation.owner, conversation.id, watermark));
}

/** Tells followers how far the restore is. */
export function progress(
  rung: RestoreProgress['rung'],
  done: number,
  total: number,
  { turn }: Pick<RestoreRequest, 'turn'>,
): Write {
  return {
    write: 'event',
    event: { kind: 'restore.progress', turn: turn?.id ?? null, payload: { rung, done, total } },
  };
}

const PAGE = 100;
