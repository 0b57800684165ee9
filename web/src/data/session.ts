import { type ConnectedClient, connect, type Me, ThroughlineError } from 'throughline/client';
import { create } from 'zustand';
import type { Scope } from '../../../src/core/key.ts';
import { Live } from '../live/live.ts';

/** What this browser may do here, and how it reaches the server. */
export type Session =
  | { readonly phase: 'connecting' }
  /** No cookie, or one that has expired: a one-time link signs it in. */
  | { readonly phase: 'signed-out' }
  | { readonly phase: 'failed'; readonly error: unknown }
  | {
      readonly phase: 'ready';
      readonly tl: ConnectedClient;
      readonly live: Live;
      readonly me: Me;
      /** The sign-in has ended while the page is open. What it shows stays readable. */
      readonly isOver: boolean;
    };

export const useSession = create<Session>(() => ({ phase: 'connecting' }));

/** Connects with the cookie of this browser. Called once, and again when somebody asks for another try. */
export async function signIn(): Promise<void> {
  // A page that is open stays as it is until it is connected anew.
  if (useSession.getState().phase !== 'ready') useSession.setState({ phase: 'connecting' }, true);
  try {
    const tl = await connect();
    const me = await tl.server.whoAmI();
    const before = useSession.getState();
    if (before.phase === 'ready') before.live.close();
    useSession.setState({ phase: 'ready', tl, live: new Live(tl), me, isOver: false }, true);
  } catch (error) {
    const isSignedOut = isRefused(error);
    const { phase } = useSession.getState();
    // A server that cannot be reached says nothing about the sign-in.
    if (phase === 'ready') return isSignedOut ? useSession.setState({ isOver: true }) : undefined;
    useSession.setState(isSignedOut ? { phase: 'signed-out' } : { phase: 'failed', error }, true);
  }
}

/** Looks whether the sign-in still holds, and joins again if another tab has renewed it. */
export async function checkSignIn(): Promise<void> {
  const session = useSession.getState();
  if (session.phase !== 'ready') return;
  try {
    await session.tl.server.whoAmI();
    if (session.isOver) await signIn();
  } catch (error) {
    // Where the server cannot be reached, that is said elsewhere.
    if (isRefused(error)) useSession.setState({ isOver: true });
  }
}

/** The cookie is missing or has expired. */
function isRefused(error: unknown): boolean {
  return error instanceof ThroughlineError && error.code === 'refused';
}

function useReady() {
  const session = useSession();
  if (session.phase !== 'ready') throw new Error('this view needs a connection');
  return session;
}

/** The client, where a view is only shown once there is one. */
export function useClient(): ConnectedClient {
  return useReady().tl;
}

export function useLive(): Live {
  return useReady().live;
}

export function useMe(): Me {
  return useReady().me;
}

/** Whether this page may do what needs the scope. What it may not is not offered. */
export function useMay(scope: Scope): boolean {
  return useReady().me.scopes.includes(scope);
}
