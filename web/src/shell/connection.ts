import { useEffect, useState } from 'react';
import { RELOAD_HINT } from '../../../src/core/errors.ts';
import { checkSignIn, useLive, useSession } from '../data/session.ts';
import type { HubState } from '../live/hub.ts';

/** Shorter interruptions are not shown. */
const SHOWN_AFTER_MS = 3_000;
/** How long the strip shows that the page is connected again. */
const BACK_MS = 5_000;

export interface ConnectionFacts {
  readonly connection: Pick<HubState, 'state' | 'since' | 'missed' | 'failure'>;
  /** The sign-in of this browser has ended. */
  readonly isOver: boolean;
  /** The server has another version than this page. */
  readonly isOutdated: boolean;
  /** The browser reports that the device is online. */
  readonly hasNetwork: boolean;
  /** An interruption was shown before this connection. */
  readonly wasLost: boolean;
}

export type Strip =
  | { readonly kind: 'signed-out' }
  | { readonly kind: 'outdated' }
  | { readonly kind: 'lost'; readonly since: number; readonly why: string }
  | { readonly kind: 'back'; readonly missed: number }
  | null;

/** What to show about the connection; null: nothing. */
export function stripOf(facts: ConnectionFacts, now: number): Strip {
  const { connection, isOver, isOutdated, hasNetwork, wasLost } = facts;
  const { state, since, missed, failure } = connection;
  if (isOutdated) return { kind: 'outdated' };
  if (isOver) return { kind: 'signed-out' };
  if (state === 'open') return wasLost && now - since < BACK_MS ? { kind: 'back', missed } : null;
  if (now - since < SHOWN_AFTER_MS) return null;
  if (failure?.code === 'storage_gone') return { kind: 'lost', since, why: failure.message };
  const why = hasNetwork ? 'The server does not answer.' : 'This device is offline.';
  return { kind: 'lost', since, why };
}

export function useStrip(): Strip {
  const live = useLive();
  const isOver = useSession((session) => session.phase === 'ready' && session.isOver);
  const [connection, setConnection] = useState(live.state);
  const [now, setNow] = useState(Date.now);
  const [wasLost, setWasLost] = useState(false);
  // It stays until the stream is open: each further try has no failure at first.
  const [isOutdated, setOutdated] = useState(false);
  useEffect(() => {
    setConnection(live.state);
    return live.onState((state) => {
      setConnection(state);
      setNow(Date.now());
      if (state.state === 'open') setOutdated(false);
      else if (state.failure?.hint === RELOAD_HINT) setOutdated(true);
      // The server refused the stream: the sign-in may have ended.
      if (state.state === 'closed') void checkSignIn();
    });
  }, [live]);
  const strip = stripOf({ connection, isOver, isOutdated, hasNetwork: navigator.onLine, wasLost }, now);
  const isLost = strip?.kind === 'lost';
  // The strip also changes with time: it appears after 3 seconds, and "connected again" disappears after 5.
  const changesIn = (connection.state === 'open' ? BACK_MS : SHOWN_AFTER_MS) - (now - connection.since);
  useEffect(() => {
    if (isLost) setWasLost(true);
    else if (strip === null && connection.state === 'open') setWasLost(false);
    if (changesIn <= 0) return;
    const timer = window.setTimeout(() => setNow(Date.now()), changesIn + 20);
    return () => window.clearTimeout(timer);
  }, [isLost, strip, connection.state, changesIn]);
  useSignInChecks();
  return strip;
}

/** While the tab was hidden, its cookie may have expired, or another tab may have got a new one. */
function useSignInChecks(): void {
  useEffect(() => {
    const check = () => document.visibilityState === 'visible' && void checkSignIn();
    document.addEventListener('visibilitychange', check);
    window.addEventListener('focus', check);
    return () => {
      document.removeEventListener('visibilitychange', check);
      window.removeEventListener('focus', check);
    };
  }, []);
}
