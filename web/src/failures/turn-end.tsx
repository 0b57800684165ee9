import { clsx } from 'clsx';
import { Ban, CirclePause, X } from 'lucide-react';
import { useEffect, useState } from 'react';
import type { Turn } from 'throughline/client';
import { useConversation, useConversationStore } from '../data/conversation/use-conversation.ts';
import { useClient, useCommand, useMay, useMe } from '../data/session.ts';
import { whoOf } from '../permissions/decision.ts';
import { agentName } from '../ui/agent-name.ts';
import { Button } from '../ui/button.tsx';
import { withCommands } from '../ui/command.ts';
import { SafeText } from '../ui/safe-text.tsx';
import { At } from '../ui/time.tsx';
import { failureWords } from './failure.ts';
import { SignIn } from './sign-in.tsx';
import { WhatToDo } from './what-to-do.tsx';

/** How a turn ended that was not answered, and what to do about it. Nothing for other turns. */
export function TurnEnd({ turn }: { turn: Turn }) {
  if (turn.state === 'cancelled') return <Stopped turn={turn} />;
  const words = failureWords(turn, agentName(turn.agent));
  return words === null ? null : <FailureBox turn={turn} words={words} />;
}

const NEW_MS = 10_000;

type Words = NonNullable<ReturnType<typeof failureWords>>;

function FailureBox({ turn, words: { title, facts, tone } }: { turn: Turn; words: Words }) {
  const mayPrompt = useMay('prompt');
  const isPast = useIsPast(turn);
  const [opened, open] = useState<'details' | 'sign-in' | null>(null);
  const toggle = (part: 'details' | 'sign-in') => open(opened === part ? null : part);
  // Only when it happens: not whenever somebody scrolls to it.
  const [isNew] = useState(() => Date.now() - (turn.endedAt ?? 0) < NEW_MS);
  const Icon = tone === 'broken' ? X : CirclePause;
  return (
    <section
      aria-label={`Turn ${turn.n} was not answered`}
      className={clsx(
        'rounded-lg border-[1.5px] px-4 pt-3 pb-3.5 text-ui',
        tone === 'broken' ? 'border-broken bg-broken-soft' : 'border-look-fill bg-look-soft',
      )}
    >
      <div className="flex items-start gap-2">
        <Icon
          size={16}
          strokeWidth={2.6}
          className={clsx('mt-0.5 shrink-0', tone === 'broken' ? 'text-broken' : 'text-look')}
          aria-hidden
        />
        <h3 role={isNew ? 'alert' : undefined} className="min-w-0 text-said/5 font-semibold wrap-anywhere">
          {title}
        </h3>
      </div>
      <div className="mt-1 space-y-2.5 pl-6">
        <p className="text-muted wrap-anywhere">
          <SafeText text={facts.join(' ')} as="words" />
          {turn.endedAt !== null && (
            <>
              {' '}
              Ended <At at={turn.endedAt} />.
            </>
          )}
        </p>
        <div className="flex flex-wrap items-center gap-2">
          {mayPrompt && !isPast && (
            <WhatToDo turn={turn} {...(turn.failure?.code === 'signed_out' && { onSignIn: () => toggle('sign-in') })} />
          )}
          <Button
            small
            look="quiet"
            className="ml-auto"
            aria-expanded={opened === 'details'}
            onClick={() => toggle('details')}
          >
            Details
          </Button>
        </div>
        {opened === 'sign-in' && !isPast && <SignIn agent={turn.agent} />}
        {opened === 'details' && <Details turn={turn} />}
      </div>
    </section>
  );
}

function Details({ turn: { failure, id, attempt } }: { turn: Turn }) {
  const command = useCommand();
  return (
    <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-1 wrap-anywhere">
      {failure !== null && (
        <>
          <dt className="text-muted">Code</dt>
          <dd className="font-mono text-facts/5">{failure.code}</dd>
          <dt className="text-muted">Message</dt>
          <dd className="whitespace-pre-wrap">
            <SafeText text={failure.message} as="words" />
          </dd>
          {failure.hint !== undefined && (
            <>
              <dt className="text-muted">What to do</dt>
              <dd className="whitespace-pre-wrap">
                <SafeText text={withCommands(failure.hint, command)} as="words" />
              </dd>
            </>
          )}
        </>
      )}
      <dt className="text-muted">Attempt</dt>
      <dd className="tabular-nums">{attempt}</dd>
      <dt className="text-muted">Turn</dt>
      <dd className="font-mono text-facts/5">{id}</dd>
    </dl>
  );
}

/** Whether the conversation went on after it: then sending it again is for the menu of the turn. */
function useIsPast({ id, n }: Turn): boolean {
  return useConversation(({ turns }) =>
    [...turns.values()].some(({ turn }) => turn.n > n && (turn.sent !== null || turn.retryOf === id)),
  );
}

function Stopped({ turn }: { turn: Turn }) {
  const { owner } = useMe();
  const by = useWhoStopped(turn);
  return (
    <p className="flex min-h-7 items-center gap-2 text-ui text-muted">
      <Ban size={14} className="shrink-0" aria-hidden />
      {by === null ? 'Stopped.' : `Stopped by ${whoOf(by, owner)}.`}
    </p>
  );
}

/** Who asked for the end of a turn, by its id. */
const stoppers = new Map<string, string | null>();

/** Null: not known. Its events say it, and only this line needs them. */
function useWhoStopped({ id, n }: Turn): string | null {
  const tl = useClient();
  const store = useConversationStore();
  const [by, setBy] = useState(stoppers.get(id) ?? null);
  useEffect(() => {
    if (stoppers.has(id)) return;
    tl.engine.events(store.id, { turn: n, before: 'end', limit: 20 }).then(
      (events) => {
        const asked = events.find(({ kind }) => kind === 'turn.cancel_requested');
        const who = asked?.kind === 'turn.cancel_requested' ? asked.payload.by : null;
        stoppers.set(id, who);
        setBy(who);
      },
      () => {}, // the server is away: only who it was is missing
    );
  }, [tl, store, id, n]);
  return by;
}
