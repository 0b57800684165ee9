import { type ConnectedClient, connect, type Me, ThroughlineError } from 'throughline/client';
import { create } from 'zustand';
import type { Scope } from '../../../src/core/key.ts';
import { Live } from '../live/live.ts';
import { usePreference, writePreference } from './preferences.ts';

/** The connection of this browser to the server, and its rights. */
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
      /** The sign-in has ended while the page was open. What is shown stays readable. */
      readonly isOver: boolean;
    };

export const useSession = create<Session>(() => ({ phase: 'connecting' }));

/** Connects with the cookie of this browser. Called at the start, and again by “Try again”. */
export async function signIn(): Promise<void> {
  // An open page stays as it is until it is connected again.
  if (useSession.getState().phase !== 'ready') useSession.setState({ phase: 'connecting' }, true);
  try {
    const tl = await connect();
    const me = await tl.server.whoAmI();
    if (me.command !== null) writePreference(COMMAND, me.command);
    const before = useSession.getState();
    if (before.phase === 'ready') before.live.close();
    useSession.setState({ phase: 'ready', tl, live: new Live(tl), me, isOver: false }, true);
  } catch (error) {
    const isSignedOut = isRefused(error);
    const { phase } = useSession.getState();
    // If the server cannot be reached, the sign-in may still be valid.
    if (phase === 'ready') return isSignedOut ? useSession.setState({ isOver: true }) : undefined;
    useSession.setState(isSignedOut ? { phase: 'signed-out' } : { phase: 'failed', error }, true);
  }
}

/** Checks whether the sign-in is still valid, and connects again if another tab has renewed it. */
export async function checkSignIn(): Promise<void> {
  const session = useSession.getState();
  if (session.phase !== 'ready') return;
  try {
    await session.tl.server.whoAmI();
    if (session.isOver) await signIn();
  } catch (error) {
    // The connection strip shows that the server cannot be reached.
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

/** The client. Throws outside of `Shell`, which is only rendered when there is one. */
export function useClient(): ConnectedClient {
  return useReady().tl;
}

export function useLive(): Live {
  return useReady().live;
}

export function useMe(): Me {
  return useReady().me;
}

/** Whether this browser has the scope. Views do not offer what it may not do. */
export function useMay(scope: Scope): boolean {
  return useReady().me.scopes.includes(scope);
}

/** Stored, because a page that is signed out prints commands as well. */
const COMMAND = 'command';

/** How a shell on the server's machine runs our commands for this data. */
export function useCommand(): string {
  const [known] = usePreference(COMMAND);
  return known ?? 'throughline';
}
