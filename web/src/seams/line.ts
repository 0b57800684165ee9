import type { Receipt, Turn, TurnOutline } from 'throughline/client';
import { givenIn } from '../../../src/core/restore/receipt.ts';

/*
 * A conversation is one line through all sessions. It consists of strands: turns in one context. Where Throughline gave a session its context,
 * or another agent took over, the next strand begins, with the next shade and in the other lane. Where an agent kept its own context, the
 * strand goes on, also in another process or under another session id.
 */

/** What the line needs to know of a turn. */
export type LineTurn = Pick<TurnOutline, 'n' | 'agent' | 'given' | 'rung' | 'imported'>;

/** How far the line has come. `strand`: the number of the last strand; 0: there is none yet. `agent`: of the last turn that has a part in it. */
export interface LineEnd {
  readonly strand: number;
  readonly agent: string | null;
}

export const NO_LINE: LineEnd = { strand: 0, agent: null };

export function lineAfter(end: LineEnd, turn: LineTurn): LineEnd {
  const { agent, given } = turn;
  const isPart = hasPart(turn);
  if (!isPart && given === null) return end;
  const bends = end.strand === 0 || given !== null || isHandoff(end, turn);
  return { strand: end.strand + (bends ? 1 : 0), agent: isPart ? agent : end.agent };
}

/** Whether another agent than before answers the turn. */
export function isHandoff({ agent: before }: LineEnd, turn: LineTurn): boolean {
  return before !== null && hasPart(turn) && turn.agent !== before;
}

/** A turn that was never sent has no part in the line. */
function hasPart({ rung, imported }: LineTurn): boolean {
  return rung !== null || imported;
}

/** A turn that may not have ended, with the receipts of its attempts, and those of the warm-ups before it. */
export function lineTurnOf(
  { n, agent, imported, sent }: Pick<Turn, 'n' | 'agent' | 'imported' | 'sent'>,
  receipts: readonly Receipt[],
): LineTurn {
  const rung = sent?.rung ?? receipts.findLast((receipt) => receipt.turn === n && receipt.rung !== 'none')?.rung;
  return { n, agent, imported, given: givenIn(receipts), rung: rung ?? null };
}

const SHADES = 4;

export type Lane = 'left' | 'right';

export function laneOf(strand: number): Lane {
  return strand % 2 === 0 && strand > 0 ? 'right' : 'left';
}

/** The colour of a strand; null: it is not known yet which strand it is. */
export function shadeOf(strand: number | null): string {
  if (strand === null || strand === 0) return 'var(--color-line-strong)';
  return `var(--color-session-${((strand - 1) % SHADES) + 1})`;
}
