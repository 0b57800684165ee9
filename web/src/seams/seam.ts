import type { Receipt, ToldPart, Turn } from 'throughline/client';
import type { Proof } from '../../../src/core/restore/receipt.ts';
import type { ReceiptRung } from '../../../src/core/restore/restore-settings.ts';
import { duration } from '../ui/time.tsx';

/*
 * A seam is where one session ended and another began, or where a session was restored into another process. It is shown before the turn
 * that needed it. The seam of a warm-up is shown after the last turn.
 */

export interface SeamFacts {
  /** The turn that follows; null: none yet. */
  readonly turn: Pick<Turn, 'agent' | 'options'> | null;
  /** The last turn before it that had a session; null: there is none, or it is not loaded. */
  readonly previous: Pick<Turn, 'agent'> | null;
  /** The receipts of the warm-ups since the previous turn, then those of the attempts of the turn. */
  readonly receipts: readonly Receipt[];
  /** The previous turn was imported: no session here has ended. */
  readonly imported: boolean;
  /** Why the previous session had ended; null: not known. */
  readonly ended: string | null;
  /** Set if the conversation was forked here. `title`: of the original; null: not known. */
  readonly fork: { readonly n: number; readonly title: string | null } | null;
}

export type Tone = 'good' | 'warn' | 'bad';

export interface Seam {
  readonly tone: Tone;
  /** The result in a word or two. */
  readonly verdict: string;
  /** The parts of the sentence. */
  readonly words: readonly string[];
  /** Null: nothing was restored here. */
  readonly receipt: Receipt | null;
}

export function seamOf(facts: SeamFacts): Seam | null {
  const handover = handoverOf(facts);
  const cause = facts.fork === null ? handover : forkText(facts.fork);
  const receipt = facts.receipts.findLast(isRestore) ?? (handover === null ? null : facts.receipts.at(-1)) ?? null;
  if (receipt === null) return cause === null ? null : { tone: 'good', verdict: 'Copied', words: [cause], receipt };
  const left = receipt.filesLeft === undefined ? [] : ['without its files'];
  const words = [cause ?? causeOf(receipt, facts), HOW[receipt.rung], ...left, ...countsOf(receipt)];
  return { tone: toneOf(receipt), verdict: verdictOf(receipt), words, receipt };
}

function forkText({ n, title }: NonNullable<SeamFacts['fork']>): string {
  return `Forked${title === null ? '' : ` from “${title}”`} at turn ${n}`;
}

/** The first session has nothing to restore, and a live one needs no restore. */
function isRestore({ rung, carried, dropped, condensed }: Receipt): boolean {
  if (rung === 'live') return false;
  return rung === 'none' || carried + dropped + condensed > 0;
}

function handoverOf({ turn, previous, receipts }: SeamFacts): string | null {
  const agent = turn?.agent ?? receipts.at(-1)?.agent;
  if (agent === undefined || previous === null || previous.agent === agent) return null;
  return `Handed over from ${previous.agent} to ${agent}`;
}

export const HOW: Readonly<Record<ReceiptRung, string>> = {
  live: 'in its live session',
  resume: 'resumed by the agent',
  rehydrate: 'rebuilt in its own storage',
  transcript: 'rebuilt by transcript',
  replay: 'rebuilt by replay',
  new: 'in a new session',
  fresh: 'without the history',
  none: 'nothing was sent',
};

/** Why a new process or session was needed. */
function causeOf({ tried: [first], rung, filesLeft }: Receipt, { turn, ended, imported }: SeamFacts): string {
  if (rung === 'none') return 'Context could not be restored';
  if (filesLeft !== undefined) return 'Moved here';
  if (imported) return 'Imported';
  if (turn?.options.restore?.rebuild === true) return 'Rebuilt on request';
  if (ended !== null) return / ended its process$/.test(ended) ? 'Process was killed' : sentence(ended);
  return first === undefined ? 'Process had ended' : sentence(first.failure);
}

const LONGEST = 90;

function sentence(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim().replace(/[.:]$/, '');
  const short = line.length <= LONGEST ? line : `${line.slice(0, LONGEST)}…`;
  return short.charAt(0).toUpperCase() + short.slice(1);
}

function countsOf({ carried, condensed, dropped, proof, modelCalls, ms, rung }: Receipt): string[] {
  const calls = `${modelCalls} model ${modelCalls === 1 ? 'call' : 'calls'}`;
  if (rung === 'none') return [calls, duration(ms)];
  const turns = [`${carried} carried`, condensed > 0 ? `${condensed} condensed` : '', `${dropped} dropped`];
  return [turns.filter((part) => part !== '').join(', '), PROOF[proof], calls, duration(ms)];
}

const PROOF: Readonly<Record<Proof, string>> = {
  proved: 'proved',
  consistent: 'consistent',
  counted: 'counted',
  none: 'not proved',
  refuted: 'refuted',
};

function toneOf({ rung, dropped, proof, filesLeft }: Receipt): Tone {
  if (rung === 'none' || proof === 'refuted') return 'bad';
  return rung === 'fresh' || dropped > 0 || proof === 'none' || filesLeft !== undefined ? 'warn' : 'good';
}

function verdictOf({ rung, proof, dropped }: Receipt): string {
  if (rung === 'none') return 'Not restored';
  if (proof === 'refuted') return 'Refuted';
  if (rung === 'fresh') return 'Fresh';
  return dropped > 0 ? 'Restored in part' : 'Restored';
}

/** `unchecked`: the browser cannot compute hashes, because the page is neither from HTTPS nor from localhost. */
export type HashCheck = 'matches' | 'differs' | 'unchecked';

/** The hash is that of the text of a transcript, and of the JSON of a prompt's content. */
export async function checkTold(part: ToldPart): Promise<HashCheck> {
  const { subtle } = globalThis.crypto;
  if (subtle === undefined) return 'unchecked';
  const text = part.as === 'transcript' ? part.text : JSON.stringify(part.content);
  const digest = new Uint8Array(await subtle.digest('SHA-256', new TextEncoder().encode(text)));
  const hex = Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex === part.sha256 ? 'matches' : 'differs';
}
