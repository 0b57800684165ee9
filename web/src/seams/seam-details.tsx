import { clsx } from 'clsx';
import { Check, Circle, CircleHelp, CircleX, type LucideIcon, TriangleAlert } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import type { Receipt, Turn } from 'throughline/client';
import { useLocation } from 'wouter';
import { type Proof, windowText } from '../../../src/core/restore/receipt.ts';
import { RUNGS } from '../../../src/core/restore/restore-settings.ts';
import { useConversation } from '../data/conversation/use-conversation.ts';
import { WhatToDo } from '../failures/what-to-do.tsx';
import { Button } from '../ui/button.tsx';
import { CliLine } from '../ui/notes.tsx';
import { isTouch } from '../ui/screen.ts';
import { shellWord } from '../ui/shell-word.ts';
import { duration } from '../ui/time.tsx';
import { cellsOf, type Share, stretchesOf, turnsText } from './strip.ts';
import { ToldText } from './told-text.tsx';

/** An opened seam: how the session got its context, which turns it has, and what it was told. */
export function SeamDetails({ receipt, turn, n }: { receipt: Receipt; turn: Turn | null; n: number }) {
  const name = useConversation(({ conversation }) => conversation?.key ?? conversation?.id ?? '');
  return (
    <div className="@container space-y-4 border-t border-line/70 px-3 py-3">
      {receipt.rung === 'none' && turn !== null && <WhatToDo turn={turn} />}
      <div className="grid gap-4 @lg:grid-cols-2">
        <Part title="Ladder: the ways to restore, best first">
          <Ladder receipt={receipt} />
        </Part>
        <Part title="Proof that the session has the context">
          <ProofLine when="Before the prompt" proof={receipt.before} />
          <ProofLine when="After the answer" proof={receipt.after} />
          <More receipt={receipt} />
        </Part>
      </div>
      {n > 1 && (
        <Part title="Which earlier turns the session has">
          <Strip n={n} receipt={receipt} turn={turn} />
        </Part>
      )}
      {turn !== null && turn.sent !== null && <ToldSection turn={turn} receipt={receipt} />}
      {turn !== null && (
        <CliLine
          line={turn.sent === null ? `throughline retry ${turn.id}` : `throughline told ${shellWord(name)} ${turn.n}`}
        />
      )}
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="min-w-0">
      <h4 className="mb-1 text-facts font-medium text-muted">{title}</h4>
      {children}
    </section>
  );
}

/** Every rung, best first: which failed and why, which worked, which were not tried or not needed. */
function Ladder({ receipt: { rung, tried } }: { receipt: Receipt }) {
  const taken = (RUNGS as readonly string[]).indexOf(rung);
  return (
    <ol className="space-y-1">
      {RUNGS.map((each, index) => {
        const failures = tried.filter((one) => one.rung === each);
        return (
          <li key={each}>
            {failures.map(({ failure }, at) => (
              <Rung key={String(at)} icon={CircleX} ink="text-broken" name={each} text={failure} />
            ))}
            {each === rung && <Rung icon={Check} ink="text-accent" name={each} text={WAYS[each]} isTaken />}
            {each !== rung && failures.length === 0 && (
              <Rung
                icon={Circle}
                ink="text-faint"
                name={each}
                text={taken >= 0 && index > taken ? 'not needed' : 'not tried'}
              />
            )}
          </li>
        );
      })}
      {taken < 0 && rung !== 'none' && (
        <Rung icon={TriangleAlert} ink="text-look" name={rung} text="the history was left out" isTaken />
      )}
    </ol>
  );
}

/** Explains each rung. */
const WAYS: Readonly<Record<(typeof RUNGS)[number], string>> = {
  live: 'its process was still running',
  resume: 'the agent reopened its own session',
  rehydrate: 'the agent’s own session files were rebuilt',
  transcript: 'a new session was told what was said',
  replay: 'the earlier prompts were sent again',
};

interface RungProps {
  readonly icon: LucideIcon;
  readonly ink: string;
  readonly name: string;
  readonly text: string;
  readonly isTaken?: boolean;
}

function Rung({ icon: Icon, ink, name, text, isTaken = false }: RungProps) {
  return (
    <span className={clsx('flex gap-2', !isTaken && 'text-muted')}>
      <Icon size={14} className={clsx('mt-0.5 shrink-0', ink)} aria-hidden />
      <span className={clsx('w-20 shrink-0 font-mono text-facts leading-5', isTaken && 'font-semibold')}>{name}</span>
      <span className="min-w-0 wrap-anywhere">
        {isTaken && <span className="sr-only">taken: </span>}
        {text}
      </span>
    </span>
  );
}

const PROOFS: Readonly<Record<Proof, { readonly icon: LucideIcon; readonly ink: string; readonly means: string }>> = {
  proved: { icon: Check, ink: 'text-accent', means: 'seen in the agent’s own storage' },
  consistent: { icon: Check, ink: 'text-accent', means: 'ids and repeated history agree' },
  counted: { icon: Check, ink: 'text-accent', means: 'Throughline delivered all of it' },
  none: { icon: CircleHelp, ink: 'text-look', means: 'there is no proof' },
  refuted: { icon: CircleX, ink: 'text-broken', means: 'shown to be wrong' },
};

function ProofLine({ when, proof }: { when: string; proof: Proof | null }) {
  const { icon: Icon, ink, means } = proof === null ? { icon: Circle, ink: 'text-faint', means: '' } : PROOFS[proof];
  return (
    <p className="flex gap-2">
      <Icon size={14} className={clsx('mt-0.5 shrink-0', ink)} aria-hidden />
      <span className="min-w-0">
        <span className="text-muted">{when}: </span>
        {proof === null ? 'not known' : proof}
        {means !== '' && <span className="block text-muted">{means}</span>}
      </span>
    </p>
  );
}

/** The other facts of the receipt, if there are any. */
function More({ receipt }: { receipt: Receipt }) {
  const { shortened, leftOut, unsettled, toolsRan, lockWaits, delivered, deliveredTokens } = receipt;
  const { unknownBefore, filesLeft } = receipt;
  const window = windowText(receipt);
  const lines = [
    delivered > 0 &&
      `${delivered} ${delivered === 1 ? 'turn was' : 'turns were'} delivered, about ${deliveredTokens.toLocaleString('en')} tokens`,
    shortened > 0 && `${shortened} of them shortened`,
    window !== null && window,
    leftOut.outputs > 0 && `${leftOut.outputs} tool outputs left out or shortened`,
    leftOut.images > 0 && `${leftOut.images} images only named`,
    leftOut.files > 0 && `${leftOut.files} files only named`,
    unknownBefore !== null && `Some history before turn ${unknownBefore} could not be read`,
    filesLeft !== undefined && `The working files are not here, but at ${filesLeft}`,
    unsettled && 'It was told that its last turn was interrupted',
    toolsRan.length > 0 && `Tools that ran in the replay: ${toolsRan.join(', ')}`,
    lockWaits.count > 0 && `Waited ${duration(lockWaits.ms)} for a lock`,
  ];
  return <ul className="mt-1 text-muted">{lines.map((line) => line !== false && <li key={line}>{line}</li>)}</ul>;
}

const SHARES: Readonly<Record<Share, { readonly look: string; readonly word: string }>> = {
  dropped: { look: 'border border-dashed border-look', word: 'dropped' },
  condensed: { look: 'bg-line-strong', word: 'condensed by the agent' },
  carried: { look: 'bg-accent', word: 'carried' },
  told: { look: 'bg-accent', word: 'told before the prompt' },
};
/** Cells are larger on a touch screen, so there are fewer. */
const CELLS = isTouch() ? 21 : 60;

function Strip({ n, receipt, turn }: { n: number; receipt: Receipt; turn: Turn | null }) {
  const [, go] = useLocation();
  const stretches = stretchesOf(n, receipt, turn?.sent?.delivered ?? null);
  return (
    <>
      <div className="flex flex-wrap gap-0.5">
        {cellsOf(stretches, CELLS).map(({ share, from, to }) => (
          <button
            key={from}
            type="button"
            title={`${turnsText({ from, to })}: ${SHARES[share].word}`}
            aria-label={`${turnsText({ from, to })}: ${SHARES[share].word}. Go there`}
            onClick={() => go(`/turn/${from}`)}
            className={clsx('h-5 w-2.5 rounded-[2px] hover:opacity-70 pointer-coarse:size-11', SHARES[share].look)}
          />
        ))}
      </div>
      <ul className="mt-1.5 flex flex-wrap gap-x-4 gap-y-1 text-facts text-muted tabular-nums">
        {stretches.map(({ share, from, to }) => (
          <li key={`${share} ${from}`} className="flex items-center gap-1.5">
            <span className={clsx('h-3 w-2 rounded-[2px]', SHARES[share].look)} aria-hidden />
            {turnsText({ from, to })} {SHARES[share].word}
          </li>
        ))}
      </ul>
    </>
  );
}

/** The exact text, loaded by a button because it may be long. */
function ToldSection({ turn, receipt }: { turn: Turn; receipt: Receipt }) {
  const [isShown, setShown] = useState(false);
  return (
    <Part title="What the session was told">
      {!isShown && (
        <Button small data-opens onClick={() => setShown(true)}>
          Show the exact text and check its hash
        </Button>
      )}
      {isShown && <ToldText turnId={turn.id} attempt={receipt.turn === null ? turn.attempt : receipt.attempt} />}
    </Part>
  );
}
