import { clsx } from 'clsx';
import { Check, CircleHelp, CircleX, Link2, type LucideIcon, X } from 'lucide-react';
import type { ReactNode } from 'react';
import type { Receipt, Turn } from 'throughline/client';
import { useLocation } from 'wouter';
import { usd } from '../../../src/core/limits/budget.ts';
import { type Proof, windowText } from '../../../src/core/restore/receipt.ts';
import type { ReceiptRung } from '../../../src/core/restore/restore-settings.ts';
import { useConversation, useConversationStore } from '../data/conversation/use-conversation.ts';
import { WhatToDo } from '../failures/what-to-do.tsx';
import { Button } from '../ui/button.tsx';
import { CliLine, copyText } from '../ui/notes.tsx';
import { say } from '../ui/say.ts';
import { isTouch } from '../ui/screen.ts';
import { shellWord } from '../ui/shell-word.ts';
import { duration } from '../ui/time.tsx';
import { turnsText } from './seam.ts';
import { cellsOf, rangeText, type Share, stretchesOf } from './strip.ts';
import { ToldText } from './told-text.tsx';

/** An opened seam: which turns the session has, how we know, which ways were tried, what it was told, and what it cost. In this order. */
export function SeamDetails({ receipt, turn, n }: { receipt: Receipt; turn: Turn | null; n: number }) {
  const { id } = useConversationStore();
  const name = useConversation(({ conversation }) => conversation?.key ?? conversation?.id ?? '');
  const isTold = turn !== null && turn.sent !== null;
  return (
    <div className="@container text-ui">
      {receipt.rung === 'none' && turn !== null && (
        <div className="border-t border-line px-4.5 py-3.5">
          <WhatToDo turn={turn} />
        </div>
      )}
      {n > 1 && receipt.rung !== 'none' && (
        <Part title="What the session knows">
          <Strip n={n} receipt={receipt} turn={turn} />
          <LeftOut receipt={receipt} />
        </Part>
      )}
      <div className="grid border-t border-line @lg:grid-cols-2 @lg:divide-x @lg:divide-line [&>*]:border-t-0">
        {receipt.rung !== 'none' && (
          <Part title="How we know">
            <ProofLine when="Before your prompt" proof={receipt.before} receipt={receipt} />
            <ProofLine when="After its answer" proof={receipt.after} receipt={receipt} />
          </Part>
        )}
        <Part title="Ways tried, best first">
          <Ways receipt={receipt} />
        </Part>
      </div>
      {isTold && (
        <Part title="The exact text it was told">
          <ToldText turnId={turn.id} attempt={receipt.turn === null ? (turn.sent?.attempt ?? 1) : receipt.attempt} />
        </Part>
      )}
      {turn !== null && (
        <div className="flex flex-wrap items-center gap-2 px-4.5 pb-3.5">
          <div className="min-w-0 flex-1">
            <CliLine line={isTold ? `throughline told ${shellWord(name)} ${turn.n}` : `throughline retry ${turn.id}`} />
          </div>
          <Button
            small
            look="quiet"
            aria-label="Copy the link to this seam"
            onClick={() => void copyText(`${location.origin}/c/${id}/seam/${n}`, () => say('Link copied.'))}
          >
            <Link2 size={14} aria-hidden />
            Link
          </Button>
        </div>
      )}
      {(receipt.rung !== 'none' || receipt.modelCalls > 0) && <Cost receipt={receipt} />}
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="min-w-0 border-t border-line px-4.5 py-3.5">
      <h3 className="mb-2 text-facts font-semibold text-faint">{title}</h3>
      {children}
    </section>
  );
}

const SHARES: Readonly<Record<Share, { readonly look: string; readonly word: string }>> = {
  dropped: { look: 'h-6 rounded-[3px] border-[1.5px] border-dashed border-look', word: 'dropped' },
  condensed: { look: 'border-b-6', word: 'in short form' },
  carried: { look: 'border-b-24', word: 'word for word' },
  told: { look: 'border-b-24', word: 'word for word, told now' },
};
/** Cells are larger on a touch screen, so there are fewer. */
const CELLS = isTouch() ? 21 : 60;

/** Thick: word for word. Thin: in short form. Dashed and hollow: dropped. */
function Strip({ n, receipt, turn }: { n: number; receipt: Receipt; turn: Turn | null }) {
  const [, go] = useLocation();
  const stretches = stretchesOf(n, receipt, turn?.sent?.delivered ?? null);
  const wordOf = (share: Share) =>
    receipt.rung === 'transcript' && share === 'told' ? 'word for word' : SHARES[share].word;
  return (
    <>
      <ul className="mb-1.5 flex flex-wrap gap-x-4 gap-y-0.5 font-semibold tabular-nums">
        {stretches.map(({ share, from, to }) => (
          <li key={`${share} ${from}`} className={clsx(share === 'dropped' && 'text-look')}>
            {rangeText({ from, to })} {wordOf(share)}
          </li>
        ))}
        {receipt.dropped === 0 && <li className="font-normal text-muted">none dropped</li>}
      </ul>
      <div className="flex min-h-6 flex-wrap items-center gap-0.5">
        {cellsOf(stretches, CELLS).map(({ share, from, to }) => (
          <button
            key={from}
            type="button"
            title={`${turnText({ from, to })}: ${wordOf(share)}`}
            aria-label={`${turnText({ from, to })}: ${wordOf(share)}. Go there`}
            onClick={() => go(`/turn/${from}`)}
            className="flex h-6 min-w-2 flex-1 items-center hover:opacity-70 pointer-coarse:h-11 pointer-coarse:min-w-11"
          >
            <span className={clsx('block w-full border-(--shade)', SHARES[share].look)} />
          </button>
        ))}
      </div>
    </>
  );
}

function turnText({ from, to }: { from: number; to: number }): string {
  return from === to ? `Turn ${from}` : `Turns ${from} to ${to}`;
}

/** What is not word for word, although the turn is there. All of it stays in the conversation. */
function LeftOut({ receipt }: { receipt: Receipt }) {
  const { shortened, leftOut, unsettled, unknownBefore, filesLeft, condensed } = receipt;
  const window = windowText(receipt);
  const parts = [
    condensed > 0 && 'The short form is the agent’s own.',
    shortened > 0 && `${turnsText(shortened)} shortened to the beginning and the end.`,
    leftOut.outputs > 0 && `${leftOut.outputs} tool outputs left out or shortened.`,
    leftOut.images > 0 && `${leftOut.images} images only named.`,
    leftOut.files > 0 && `${leftOut.files} files only named.`,
    window !== null && `The history was ${window}.`,
    unknownBefore !== null && `Some history before turn ${unknownBefore} could not be read.`,
    filesLeft !== undefined && `The working files are not here, but at ${filesLeft}.`,
    unsettled && 'It was told that its last turn was interrupted.',
  ].filter((part) => part !== false);
  const isShort = shortened + leftOut.outputs + leftOut.images + leftOut.files > 0;
  if (parts.length === 0) return null;
  return (
    <p className="mt-2 text-muted wrap-anywhere">
      {parts.join(' ')}
      {isShort && ' All of it is still here, in the conversation.'}
    </p>
  );
}

const PROOFS: Readonly<
  Record<Proof, { readonly icon: LucideIcon; readonly ink: string; means(receipt: Receipt): string }>
> = {
  proved: {
    ...{ icon: Check, ink: 'text-accent' },
    means: ({ carried }) =>
      `the agent’s own storage was read, and has ${carried === 1 ? 'the turn' : `all ${carried} turns`}.`,
  },
  consistent: { icon: Check, ink: 'text-accent', means: () => 'ids and repeated text match.' },
  counted: { icon: Check, ink: 'text-accent', means: () => 'the text below reached the agent whole.' },
  none: { icon: CircleHelp, ink: 'text-look', means: () => 'nothing confirms it.' },
  refuted: { icon: CircleX, ink: 'text-broken', means: () => 'what the agent has says otherwise.' },
};

function ProofLine({ when, proof, receipt }: { when: string; proof: Proof | null; receipt: Receipt }) {
  const known = proof === null ? null : PROOFS[proof];
  const Icon = known?.icon ?? CircleHelp;
  return (
    <p className="mt-1 flex gap-2 text-muted">
      <Icon size={15} className={clsx('mt-0.5 shrink-0', known?.ink ?? 'text-faint')} aria-hidden />
      <span className="min-w-0">
        <b className="font-semibold text-ink">{when}:</b> {known === null ? 'not known.' : known.means(receipt)}
      </span>
    </p>
  );
}

/** What each way does, best first. */
const WAYS: Readonly<Record<ReceiptRung, string>> = {
  live: 'Go on in its running session',
  resume: 'Reopen its session',
  rehydrate: 'Rebuild its file',
  transcript: 'Tell a new session what was said',
  replay: 'Ask a new session the prompts again',
  new: 'Open a new session',
  fresh: 'Start without the history',
  none: 'Find a way',
};

function Ways({ receipt: { rung, tried, toolsRan, lockWaits } }: { receipt: Receipt }) {
  return (
    <ol className="space-y-1">
      {tried.map(({ rung: failed, failure }, index) => (
        <Way key={String(index)} icon={X} ink="text-broken">
          {WAYS[failed]} <span className="text-faint">– {failure}</span>
        </Way>
      ))}
      {rung === 'none' && tried.length === 0 && (
        <li className="text-muted">None was possible here. The turn below says why.</li>
      )}
      {rung !== 'none' && (
        <Way icon={Check} ink="text-accent">
          <b className="font-semibold text-ink">{WAYS[rung]}</b>
          <span className="sr-only"> (this one worked)</span>
        </Way>
      )}
      {toolsRan.length > 0 && <li className="text-muted">Tools that ran again: {toolsRan.join(', ')}</li>}
      {lockWaits.count > 0 && <li className="text-muted">Waited {duration(lockWaits.ms)} for a lock</li>}
    </ol>
  );
}

function Way({ icon: Icon, ink, children }: { icon: LucideIcon; ink: string; children: ReactNode }) {
  return (
    <li className="flex gap-2 text-muted">
      <Icon size={14} className={clsx('mt-0.5 shrink-0', ink)} aria-hidden />
      <span className="min-w-0 wrap-anywhere">{children}</span>
    </li>
  );
}

/** What the restore cost, once. */
function Cost({ receipt: { deliveredTokens, modelCalls, usage, ms } }: { receipt: Receipt }) {
  return (
    <p className="flex flex-wrap items-center gap-x-4.5 gap-y-1 border-t border-line bg-sunken px-4.5 py-2 text-muted tabular-nums [&_b]:font-semibold [&_b]:text-ink">
      <span>Cost, once:</span>
      {usage.costMicros > 0 && <b>{usd(usage.costMicros)}</b>}
      {deliveredTokens > 0 && (
        <span>
          about <b>{deliveredTokens.toLocaleString('en')}</b> tokens of input
        </span>
      )}
      <span>
        <b>{modelCalls}</b> extra {modelCalls === 1 ? 'call' : 'calls'} to the model
      </span>
      <span>
        <b>{duration(ms)}</b> before your prompt
      </span>
    </p>
  );
}
