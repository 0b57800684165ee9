import type { Delayed } from '../../core/limits/slots.ts';
import type { PublicEventPayloads } from '../../core/public/event.ts';
import type { PublicReceipt } from '../../core/public/session.ts';
import type { Tried } from '../../core/restore/receipt.ts';
import type { Stranded } from '../../core/turn/standing.ts';
import type { Usage } from '../../core/turn/usage.ts';

/** Values that many commands show, in words. */

/** A time in the reader's zone, to the minute. */
export function time(at: number): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** What is said of a turn that completed unseen. */
export const RECOVERED = 'Nobody saw the end of this turn: it was read from the agent’s own storage.';

export function turns(count: number): string {
  return counted(count, 'turn');
}

export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** An agent that gives no sign of life, in one line. */
export function stalledLine({ silentMs, tool, endsInMs }: PublicEventPayloads['turn.stalled']): string {
  const running = tool === null ? '' : ` while it runs ${tool}`;
  const then = endsInMs === null ? '' : `; the turn is ended in ${duration(endsInMs)} if that stays so`;
  return `no sign of life from the agent for ${duration(silentMs)}${running}${then}`;
}

/** In seconds up to two minutes, then in minutes. */
function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}

/** Why nobody runs a turn, or why it has not begun, and what to do. */
export function strandedLine({ message, hint }: Stranded | Delayed): string {
  return `${message} ${hint}`;
}

/** What was used, in one line. Rare kinds are left out when they are zero. */
export function usageLine(usage: Usage): string {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, costMicros, modelCalls } = usage;
  const parts = [`${inputTokens} tokens in`, `${outputTokens} out`];
  if (cacheReadTokens > 0) parts.push(`${cacheReadTokens} from cache`);
  if (cacheWriteTokens > 0) parts.push(`${cacheWriteTokens} to cache`);
  parts.push(calls(modelCalls));
  if (costMicros > 0) parts.push(`$${(costMicros / 1_000_000).toFixed(4)}`);
  return parts.join(', ');
}

/** A receipt in one line: how the session got its context, what was carried, condensed and dropped, the proof, and what failed before. */
export function receiptLine(receipt: PublicReceipt): string {
  return [how(receipt), ...extras(receipt)].join(', ') + failed(receipt.tried);
}

function how({ rung, carried, condensed, dropped, proof }: PublicReceipt): string {
  // The proof is about the turns carried: nothing proves what a summary holds.
  const counts =
    condensed === 0
      ? `${turns(carried)} carried, ${dropped} dropped, proof ${proof}`
      : `${turns(carried)} carried (proof ${proof}), ${condensed} condensed by the agent, ${dropped} dropped`;
  switch (rung) {
    case 'new':
      return 'new session: nothing to carry';
    case 'fresh':
      return `fresh session without the history: ${counts}`;
    case 'none':
      return dropped === 0 ? 'no session was opened' : `context not restored: ${turns(dropped)} would have been lost`;
    case 'live':
      return `continued in the live session: ${counts}`;
    default:
      return `restored by ${rung}: ${counts}`;
  }
}

function extras(receipt: PublicReceipt): string[] {
  const { shortened, leftOut, unknownBefore, unsettled, modelCalls, toolsRan, lockWaits } = receipt;
  const result: string[] = [];
  if (unknownBefore !== null) result.push(`what was said before turn ${unknownBefore} is not known`);
  if (shortened > 0) result.push(`${shortened} of them shortened`);
  const parts = [count(leftOut.outputs, 'tool output'), count(leftOut.images, 'image'), count(leftOut.files, 'file')];
  const missing = parts.filter((part) => part !== null);
  if (missing.length > 0) result.push(`left out or cut: ${missing.join(' and ')}`);
  if (unsettled) result.push('told that its last turn did not complete');
  if (modelCalls > 0) result.push(`${calls(modelCalls)} for restoring`);
  if (toolsRan.length > 0) result.push(`tools ran: ${toolsRan.join(', ')}`);
  if (lockWaits.count > 0) result.push(`waited ${lockWaits.ms} ms for its lock`);
  return result;
}

function failed(tried: readonly Tried[]): string {
  return tried.length === 0 ? '' : ` (${tried.map(({ rung, failure }) => `${rung}: ${failure}`).join('; ')})`;
}

function count(n: number, thing: string): string | null {
  return n === 0 ? null : `${n} ${thing}${n === 1 ? '' : 's'}`;
}

function calls(count: number): string {
  return `${count} model ${count === 1 ? 'call' : 'calls'}`;
}
