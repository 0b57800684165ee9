import type { Session } from 'throughline/client';

const SESSION_COLOURS = 4;

/** The colour of a session. `order`: its number in the order in which sessions were opened, from 0. */
export function sessionColour(order: number): string {
  return `var(--color-session-${(order % SESSION_COLOURS) + 1})`;
}

type Opened = Pick<Session, 'id' | 'origin' | 'parent' | 'openedAt'>;

const known = new WeakMap<readonly Opened[], ReadonlyMap<string, number>>();

/** The order number of each session by id, computed once for each list. A rotated session (only its id changed) keeps its number. */
export function sessionOrders(sessions: readonly Opened[]): ReadonlyMap<string, number> {
  const before = known.get(sessions);
  if (before !== undefined) return before;
  const orders = new Map<string, number>();
  let next = 0;
  for (const { id, origin, parent } of sessions.toSorted((a, b) => a.openedAt - b.openedAt)) {
    const inherited = origin === 'rotated' && parent !== null ? orders.get(parent) : undefined;
    orders.set(id, inherited ?? next);
    if (inherited === undefined) next += 1;
  }
  known.set(sessions, orders);
  return orders;
}
