import type { Receipt, ToldPart, Turn } from 'throughline/client';
import { costText } from '../../../src/core/limits/budget.ts';
import { givenIn, type Proof } from '../../../src/core/restore/receipt.ts';
import type { ReceiptRung } from '../../../src/core/restore/restore-settings.ts';
import { agentName } from '../ui/agent-name.ts';

/*
 * A seam is where one session ended and another began, or where a session was restored into another process. It is shown before the turn
 * that needed it. The seam of a warm-up, and of turns that were brought in and not continued yet, is shown after the last turn.
 */

export interface SeamFacts {
  /** The number of the turn that follows. */
  readonly n: number;
  /** The turn that follows; null: none yet. */
  readonly turn: Pick<Turn, 'agent' | 'options'> | null;
  /** The last turn before it that was sent or imported; null: there is none, or it is not loaded. */
  readonly previous: Pick<Turn, 'agent' | 'imported' | 'sessionId'> | null;
  /** The receipts of the warm-ups since the previous turn, then those of the attempts of the turn. */
  readonly receipts: readonly Receipt[];
  /** Why the previous session had ended; null: not known. */
  readonly ended: string | null;
  /** Set if the conversation was forked here. `title`: of the original; null: not known. */
  readonly fork: { readonly n: number; readonly title: string | null } | null;
}

export type SeamKind =
  | ('resume' | 'rehydrate' | 'transcript' | 'replay')
  | ('handoff' | 'fork' | 'import' | 'fresh' | 'failed');

export type Tone = 'good' | 'look' | 'broken';

export interface Seam {
  readonly kind: SeamKind;
  /** What happened; empty: nothing is known of that. */
  readonly happened: string;
  /** What it means for what the session knows. */
  readonly means: string;
  /** Good: nothing is missing. Look: not all is known. Broken: nothing could be restored, or the proof contradicts it. */
  readonly tone: Tone;
  /** How far that is proved, or what it cost; null: nothing was restored. */
  readonly proof: { readonly word: string; readonly tone: Tone } | null;
  /** In two or three words, for the outline. */
  readonly brief: string;
  /** What the session lacks; null: nothing. */
  readonly loss: Loss | null;
  /** Null: nothing was restored here. */
  readonly receipt: Receipt | null;
}

export interface Loss {
  /** How many turns the session knows, of all; and how many it does not: the oldest. */
  readonly known: number;
  readonly of: number;
  readonly dropped: number;
}

/** Null: the line goes on without a seam. */
export function seamOf(facts: SeamFacts): Seam | null {
  const { receipts } = facts;
  const isGiven = (receipt: Receipt) => givenIn([receipt]) !== null;
  // What gave the session its context counts more than a later attempt that found it there.
  const restored = receipts.at(-1)?.rung === 'none' ? receipts.at(-1) : receipts.findLast(isGiven);
  const receipt = restored ?? receipts.findLast(isRestore) ?? (isHandoff(facts) ? receipts.at(-1) : undefined);
  return receipt === undefined ? broughtIn(facts) : seamWith(receipt, facts);
}

/** The first session has nothing to restore, and a live one needs no restore. */
function isRestore({ rung, carried, dropped, condensed }: Receipt): boolean {
  if (rung === 'live') return false;
  return rung === 'none' || carried + dropped + condensed > 0;
}

function isHandoff({ turn, previous, receipts }: SeamFacts): boolean {
  const agent = turn?.agent ?? receipts.at(-1)?.agent;
  return agent !== undefined && previous !== null && previous.agent !== agent;
}

/** The seam of turns from elsewhere, before a session was told them; null: they are not from elsewhere, or the next turn says so. */
function broughtIn(facts: SeamFacts): Seam | null {
  const { fork, previous, turn } = facts;
  const isImport = fork === null && previous?.imported === true && turn === null;
  if (fork === null && !isImport) return null;
  const kind = fork === null ? 'import' : 'fork';
  const means = turn === null ? 'Not yet opened here.' : '';
  const rest = { tone: 'good', proof: null, brief: BRIEFLY[kind], loss: null, receipt: null } as const;
  return { kind, happened: happenedIn(kind, facts, null), means, ...rest };
}

function seamWith(receipt: Receipt, facts: SeamFacts): Seam {
  const kind = kindOf(receipt, facts);
  const loss = lossOf(receipt);
  const happened = happenedIn(kind, facts, receipt);
  const proof = proofOf(receipt);
  const tone = toneOf(receipt);
  return {
    kind,
    happened,
    means: meansOf(kind, facts, receipt),
    tone,
    proof,
    brief: brieflyOf(kind, receipt),
    loss,
    receipt,
  };
}

function kindOf(receipt: Receipt, facts: SeamFacts): SeamKind {
  const { rung } = receipt;
  if (rung === 'none') return 'failed';
  if (rung === 'fresh') return 'fresh';
  if (facts.fork !== null) return 'fork';
  if (isHandoff(facts)) return 'handoff';
  if (facts.previous?.imported === true) return 'import';
  return rung === 'live' || rung === 'new' ? 'resume' : rung;
}

/** What a session lacks; null: nothing, or there is no session. */
export function lossOf({ rung, carried, condensed, dropped }: Receipt): Loss | null {
  if (rung === 'none' || dropped === 0) return null;
  return { known: carried + condensed, of: carried + condensed + dropped, dropped };
}

/** Whether a session lacks so much that nobody may overlook it. */
export function isLarge({ dropped, of }: Loss): boolean {
  return dropped * 2 >= of;
}

const LONGEST = 90;

function sentence(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim().replace(/[.:]$/, '');
  const short = line.length <= LONGEST ? line : `${line.slice(0, LONGEST)}…`;
  return `${short.charAt(0).toUpperCase()}${short.slice(1)}.`;
}

function happenedIn(kind: SeamKind, facts: SeamFacts, receipt: Receipt | null): string {
  const { fork, previous, turn, ended, n } = facts;
  switch (kind) {
    case 'failed':
      return '';
    case 'fork':
      return fork === null
        ? ''
        : `Branched from ${fork.title === null ? 'another conversation' : `“${fork.title}”`} after turn ${fork.n}.`;
    case 'import':
      return `Brought in${previous?.sessionId == null ? '' : ` from ${agentName(previous.agent)}`} with ${turnsText(n - 1)}.`;
    case 'handoff':
      return receipt?.rung === 'replay' ? 'Nothing else worked.' : '';
  }
  if (receipt?.filesLeft !== undefined) return 'The conversation was moved here without its files.';
  if (turn?.options.restore?.rebuild === true) return 'You asked for a new session.';
  const agent = agentName(receipt?.agent ?? turn?.agent ?? '');
  if (ended !== null)
    return / (ended its process|asked for it)$/.test(ended) ? `${agent} was killed.` : sentence(ended);
  const [first] = receipt?.tried ?? [];
  if (kind === 'fresh') return '';
  return first === undefined ? `${agent} was restarted.` : sentence(first.failure);
}

function meansOf(kind: SeamKind, facts: SeamFacts, receipt: Receipt): string {
  const loss = lossOf(receipt);
  if (kind === 'failed') return 'No session could be given the history. Your prompt was not sent.';
  if (kind === 'fresh') return freshText(facts, receipt);
  const proof = receipt.proof === 'none' ? ' Nothing confirms that they arrived.' : '';
  const contradicted = receipt.proof === 'refuted' ? ' What the agent has says otherwise.' : '';
  const took =
    kind === 'handoff' ? `${agentName(receipt.agent)} took over from ${agentName(facts.previous?.agent ?? '')}` : '';
  if (loss !== null) {
    const lacks = `${loss.dropped.toLocaleString('en')} oldest did not fit.`;
    return `${took === '' ? 'It' : `${took}. It`} knows ${loss.known.toLocaleString('en')} of ${turnsText(loss.of)}; the ${lacks}${contradicted}`;
  }
  return `${took === '' ? toldText(kind, receipt) : handoffText(took, receipt)}${proof}${contradicted}`;
}

function freshText({ turn }: SeamFacts, { carried, condensed, dropped }: Receipt): string {
  const asked = turn?.options.restore?.policy === 'off' ? ', as you asked' : '';
  return `It started without the history${asked}. It knows none of the ${turnsText(carried + condensed + dropped)} above.`;
}

function handoffText(took: string, receipt: Receipt): string {
  if (receipt.rung !== 'live' && receipt.rung !== 'resume') return `${took} and was told ${allOf(receipt)}.`;
  const since = receipt.delivered > 0 ? ` and was told the ${turnsText(receipt.delivered)} since` : '';
  return `${took}${since}. Its own session went on, ${allOf(receipt)}.`;
}

function toldText(kind: SeamKind, receipt: Receipt): string {
  switch (receipt.rung) {
    case 'rehydrate':
      return `The file was rebuilt from the record, ${allOf(receipt)}.`;
    case 'replay':
      return `A new session was asked the ${promptsText(receipt)} again; its answers are new.`;
    case 'transcript':
      return kind === 'fork' ? `This copy was told ${allOf(receipt)}.` : `A new session was told ${allOf(receipt)}.`;
    default:
      return `It reopened its own session, ${allOf(receipt)}.`;
  }
}

/** `all 46 turns, 12 in short form`. */
function allOf({ carried, condensed }: Receipt): string {
  const all = carried + condensed === 1 ? 'the one turn' : `all ${turnsText(carried + condensed)}`;
  return condensed === 0 ? all : `${all}, ${condensed.toLocaleString('en')} in short form`;
}

function promptsText({ carried, condensed }: Receipt): string {
  const prompts = carried + condensed;
  return prompts === 1 ? 'one prompt' : `${prompts.toLocaleString('en')} prompts`;
}

export function turnsText(amount: number): string {
  return amount === 1 ? '1 turn' : `${amount.toLocaleString('en')} turns`;
}

export const PROOF_WORDS: Readonly<Record<Proof, string>> = {
  proved: 'proved',
  consistent: 'matches',
  counted: 'delivered',
  none: 'not proved',
  refuted: 'contradicted',
};

function proofOf({ rung, proof, modelCalls, usage }: Receipt): Seam['proof'] {
  if (rung === 'none' || rung === 'fresh') return null;
  if (proof === 'refuted') return { word: PROOF_WORDS.refuted, tone: 'broken' };
  if (rung === 'replay') {
    const price = costText(usage);
    return {
      word: `${modelCalls} ${modelCalls === 1 ? 'call' : 'calls'}${price === null ? '' : `, ${price}`}`,
      tone: 'look',
    };
  }
  return { word: PROOF_WORDS[proof], tone: proof === 'none' ? 'look' : 'good' };
}

function toneOf({ rung, dropped, proof, filesLeft }: Receipt): Tone {
  if (rung === 'none' || proof === 'refuted') return 'broken';
  return rung === 'fresh' || dropped > 0 || proof === 'none' || filesLeft !== undefined ? 'look' : 'good';
}

/** How a session got its context, in a few words. */
export const HOW: Readonly<Record<ReceiptRung, string>> = {
  live: 'in its running session',
  resume: 'reopened by the agent',
  rehydrate: 'its file was rebuilt',
  transcript: 'told to a new session',
  replay: 'the prompts were asked again',
  new: 'in a new session',
  fresh: 'without the history',
  none: 'nothing was sent',
};

/** Words for a seam whose receipt is not loaded. */
export const BRIEFLY: Readonly<Record<SeamKind, string>> = {
  resume: 'reopened',
  rehydrate: 'file rebuilt',
  transcript: 'told to a new session',
  replay: 'asked again',
  handoff: 'another agent',
  fork: 'branched',
  import: 'brought in',
  fresh: 'without the history',
  failed: 'not restored',
};

function brieflyOf(kind: SeamKind, receipt: Receipt): string {
  const loss = lossOf(receipt);
  if (kind === 'failed' || kind === 'fresh') return BRIEFLY[kind];
  if (loss !== null) return `knows ${loss.known.toLocaleString('en')} of ${loss.of.toLocaleString('en')}`;
  if (kind === 'handoff') return `${agentName(receipt.agent)} took over`;
  if (receipt.rung === 'transcript')
    return receipt.condensed === 0 ? 'told all' : `told all, ${receipt.condensed.toLocaleString('en')} in short form`;
  return kind === 'resume' ? 'reopened, nothing lost' : BRIEFLY[kind];
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
