import { type ReactNode, useEffect, useState } from 'react';
import type { Session, Told, TurnOutline } from 'throughline/client';
import { Link, useSearchParams } from 'wouter';
import { useOutline } from '../data/conversation/outline.ts';
import { useConversation } from '../data/conversation/use-conversation.ts';
import { describeError } from '../data/errors.ts';
import { useClient } from '../data/session.ts';
import { amountsOf, shownCost, shownCount } from '../panel/amounts.ts';
import { Empty, ErrorNote, Facts, Skeleton, Verbatim } from '../ui/notes.tsx';
import { Ago } from '../ui/time.tsx';
import { type Share, shareOf, toldText } from './share.ts';

/** `/c/:id/compare`: two sessions side by side: which turns each has, what each was told, and what it cost. */
export function Compare() {
  const sessions = useConversation((state) => state.sessions);
  const { turns, error } = useOutline();
  const [search, setSearch] = useSearchParams();
  if (error !== null) return <ErrorNote error={error} />;
  if (turns === null) return <Skeleton lines={6} />;
  if (sessions.length < 2) {
    return (
      <Empty title="There is nothing to compare yet.">
        <p>This conversation has had {sessions.length === 1 ? 'one session' : 'no session'} so far.</p>
        <Link href="/" className="touch text-ink underline decoration-control underline-offset-3">
          Back to the conversation
        </Link>
      </Empty>
    );
  }
  const byAge = sessions.toSorted((a, b) => a.openedAt - b.openedAt);
  const chosen = (name: string, otherwise: Session | undefined) =>
    byAge.find(({ id }) => id === search.get(name)) ?? otherwise;
  const [a, b] = [chosen('a', byAge.at(-2)), chosen('b', byAge.at(-1))];
  const choose = (name: string, id: string) =>
    setSearch((before) => new URLSearchParams({ ...Object.fromEntries(before), [name]: id }), { replace: true });
  return (
    <div className="min-h-0 flex-1 overflow-auto p-4">
      <Link
        href="/"
        className="touch text-ui text-ink underline decoration-control underline-offset-3 underline-offset-2"
      >
        ← Back to the conversation
      </Link>
      <div className="mt-3 grid gap-6 md:grid-cols-2">
        <Side name="a" label="First session" session={a} sessions={byAge} turns={turns} choose={choose} />
        <Side name="b" label="Second session" session={b} sessions={byAge} turns={turns} choose={choose} />
      </div>
    </div>
  );
}

interface SideProps {
  readonly name: 'a' | 'b';
  readonly label: string;
  readonly session: Session | undefined;
  readonly sessions: readonly Session[];
  readonly turns: readonly TurnOutline[];
  choose(name: string, id: string): void;
}

function Side({ name, label, session, sessions, turns, choose }: SideProps) {
  if (session === undefined) return null;
  const share = shareOf(session, turns);
  return (
    <section aria-label={label} className="min-w-0 space-y-4 text-ui">
      <select
        aria-label={label}
        value={session.id}
        onChange={(event) => choose(name, event.target.value)}
        className="h-9 w-full rounded-md pointer-coarse:h-11 border border-line bg-raised px-2"
      >
        {sessions.map(({ id, agent }, index) => (
          <option key={id} value={id}>
            {`${index + 1}. ${agent} ${id.slice(0, 8)}`}
          </option>
        ))}
      </select>
      <SessionFacts session={session} share={share} />
      <Strip share={share} />
      <ToldFirst share={share} />
    </section>
  );
}

function SessionFacts({ session, share }: { session: Session; share: Share }) {
  const { read, written } = amountsOf(session.usage);
  const facts: readonly (readonly [string, ReactNode])[] = [
    ['Agent', session.agent],
    ['State', session.state],
    ['Started as', ORIGINS[session.origin]],
    ['Age', <Ago key="opened" at={session.openedAt} />],
    ['Answered', turns(share.answered.length)],
    ['Has turns up to', String(session.watermark)],
    ['Dropped', session.dropped === 0 ? 'none' : turns(session.dropped)],
    ['Condensed', session.condensedTo === 0 ? 'none' : `up to turn ${session.condensedTo}`],
    ['Tokens in / out', `${shownCount(read)} / ${shownCount(written)}`],
    ['Cost', shownCost(session.usage)],
  ];
  return <Facts facts={facts} className="grid-cols-[auto_1fr] gap-x-4" />;
}

function turns(amount: number): string {
  return amount === 1 ? '1 turn' : `${amount} turns`;
}

const ORIGINS: Readonly<Record<Session['origin'], string>> = {
  new: 'a new session',
  rotated: 'the same session under another id',
  rehydrated: 'a session rebuilt in the agent’s storage',
  adopted: 'a session started elsewhere',
};

/** The turns as one bar: answered, restored or missing. */
function Strip({ share }: { share: Share }) {
  const parts = [
    ['answered', share.answered.length, 'bg-accent'],
    ['restored', share.restored, 'bg-line-strong'],
    ['missing', share.missing, 'bg-broken-soft'],
  ] as const;
  return (
    <figure>
      <div className="flex h-2 overflow-hidden rounded-full bg-sunken" aria-hidden>
        {parts.map(([name, size, look]) => (
          <div key={name} className={look} style={{ flexGrow: size }} />
        ))}
      </div>
      <figcaption className="mt-1 text-facts text-muted">
        {parts.map(([name, size]) => `${size} ${name}`).join(' · ')}
      </figcaption>
    </figure>
  );
}

/** What the session was told with its first prompt, word for word. */
function ToldFirst({ share }: { share: Share }) {
  const { engine } = useClient();
  const [told, setTold] = useState<Told | null>(null);
  const [error, setError] = useState<unknown>(null);
  const first = share.answered[0];
  useEffect(() => {
    setTold(null);
    setError(null);
    if (first === undefined) return;
    let isCurrent = true;
    engine.told(first.id).then(
      (value) => isCurrent && setTold(value),
      (reason) => isCurrent && setError(reason),
    );
    return () => {
      isCurrent = false;
    };
  }, [engine, first]);
  if (first === undefined) return null;
  return (
    <div>
      <h2 className="mb-1 text-facts text-muted">
        What it was told with its first turn,{' '}
        <Link
          href={`/turn/${first.n}`}
          className="text-ink underline decoration-control underline-offset-3 underline-offset-2"
        >
          turn {first.n}
        </Link>
      </h2>
      {error !== null && <p className="text-muted">{describeError(error).message}</p>}
      {told !== null && (
        <Verbatim label={`What it was told with turn ${first.n}`} className="max-h-[50vh]">
          {toldText(told)}
        </Verbatim>
      )}
    </div>
  );
}
