import { costText, tokensOf } from '../../core/limits/budget.ts';
import type { Delayed } from '../../core/limits/slots.ts';
import type { PublicEventPayloads } from '../../core/public/event.ts';
import type { PublicReceipt } from '../../core/public/session.ts';
import { type Tried, windowText } from '../../core/restore/receipt.ts';
import type { ToolPart } from '../../core/turn/record.ts';
import type { Stranded } from '../../core/turn/standing.ts';
import type { Usage } from '../../core/turn/usage.ts';
import { cells, cutTo, oneLine } from './terminal-text.ts';

/** Values that many commands show, in words. */

/** A time in the reader's zone, to the minute. */
export function time(at: number): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** Said of a turn that completed while no process of ours watched it. */
export const RECOVERED = 'The end of this turn was not observed: it was read later from the agent’s own storage.';

export function turns(count: number): string {
  return counted(count, 'turn');
}

export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

/** An agent that sends nothing, in one line. */
export function stalledLine({ silentMs, tool, endsInMs }: PublicEventPayloads['turn.stalled']): string {
  const running = tool === null ? '' : ` while it runs ${tool}`;
  const then = endsInMs === null ? '' : `; the turn is ended in ${duration(endsInMs)} if this continues`;
  return `the agent has sent nothing for ${duration(silentMs)}${running}${then}`;
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
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, modelCalls } = usage;
  const parts = [`${inputTokens} tokens in`, `${outputTokens} out`];
  if (cacheReadTokens > 0) parts.push(`${cacheReadTokens} from cache`);
  if (cacheWriteTokens > 0) parts.push(`${cacheWriteTokens} to cache`);
  parts.push(counted(modelCalls, 'model call'));
  const cost = costLine(usage);
  if (cost !== null) parts.push(cost);
  return parts.join(', ');
}

/** The cost within a sentence; null: there is none. */
export function costLine(usage: Usage): string | null {
  const cost = costText(usage);
  return cost === null || usage.costMicros > 0 ? cost : `cost of ${cost}`;
}

/** A tool in one line: its kind, what it did and on what, how long it took, and how it ended if it did not complete. */
export function toolLine({ kind, name, target, status, ms }: ToolPart): string {
  const what = oneLine(name, 'code');
  const place = oneLine(target ?? '', 'code');
  const on = what.includes(place) ? '' : ` ${place}`;
  const sort = kind === 'other' || what.toLowerCase().startsWith(kind) ? 'tool' : oneLine(kind);
  const took = ms === undefined ? '' : `, ${shortTime(ms)}`;
  const ended = { completed: '', failed: ', failed', unknown: ', end unknown' }[status];
  return `${sort}: ${what}${on}${took}${ended}`;
}

function shortTime(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : ms < 120_000 ? `${(ms / 1_000).toFixed(1)} s` : duration(ms);
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
  const { shortened, leftOut, unknownBefore, filesLeft, unsettled, modelCalls, toolsRan, lockWaits } = receipt;
  const result: string[] = [];
  if (unknownBefore !== null) result.push(`what was said before turn ${unknownBefore} is unknown`);
  if (filesLeft !== undefined) result.push(`moved without the files of the work: they are at ${filesLeft}`);
  if (shortened > 0) result.push(`${shortened} of them shortened`);
  const window = windowText(receipt);
  if (window !== null) result.push(window);
  const kinds = { 'tool output': leftOut.outputs, image: leftOut.images, file: leftOut.files };
  const missing = Object.entries(kinds).flatMap(([kind, count]) => (count === 0 ? [] : [counted(count, kind)]));
  if (missing.length > 0) result.push(`left out or cut: ${missing.join(' and ')}`);
  if (unsettled) result.push('told that its last turn did not complete');
  if (modelCalls > 0) result.push(`${counted(modelCalls, 'model call')} for restoring`);
  if (toolsRan.length > 0) result.push(`tools ran: ${toolsRan.join(', ')}`);
  if (lockWaits.count > 0) result.push(`waited ${lockWaits.ms} ms for its lock`);
  return result;
}

function failed(tried: readonly Tried[]): string {
  return tried.length === 0 ? '' : ` (${tried.map(({ rung, failure }) => `${rung}: ${failure}`).join('; ')})`;
}

interface UsageOf {
  /** What the row is about: a day and an agent, a task. */
  readonly names: readonly string[];
  readonly turns: number;
  readonly usage: Usage;
}

const LONGEST_NAME = 24;
const LONGEST_BAR = 40;
const SHORTEST_BAR = 8;
const FIGURES = ['in', 'out', 'cached', 'cost'];

/**
 * Usage as a table with a bar for the tokens of each row. Where the bars do not fit into `width`, they are left out. Where the table
 * itself does not fit, the figures stand below the names. What an agent does not report is `–`. `width` null: there is no terminal,
 * and each row is a sentence.
 */
export function usageTable(rows: readonly UsageOf[], width: number | null): string[] {
  if (width === null) {
    return rows.map(
      (row) => `${row.names.map((each) => oneLine(each)).join('  ')}  ${turns(row.turns)}: ${known(row.usage) ?? '–'}`,
    );
  }
  const most = Math.max(1, ...rows.map(({ usage }) => tokensOf(usage)));
  const shown = rows.map(({ names, turns: count, usage }) => {
    const isKnown = known(usage) !== null;
    const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
    const tokens = [inputTokens, outputTokens, cacheReadTokens + cacheWriteTokens];
    return [
      ...names.map((name) => cutTo(oneLine(name), LONGEST_NAME)),
      turns(count),
      ...tokens.map((count) => (isKnown ? short(count) : '–')),
      costText(usage) ?? '–',
    ];
  });
  const names = rows[0]?.names.length ?? 0;
  const table = [[...Array.from({ length: names }, () => ''), '', ...FIGURES], ...shown];
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => cells(row[column] ?? '')))) ?? [];
  const lines = table.map((row) =>
    row.map((cell, column) => padded(cell, widths[column] ?? 0, column < names)).join('  '),
  );
  const room = width - cells(lines[0] ?? '');
  if (room < 0) return shown.flatMap((row) => stacked(row.slice(0, names), row.slice(names), width));
  const bar = Math.min(LONGEST_BAR, room - 2);
  return lines.map((line, index) => {
    const row = rows[index - 1];
    if (row === undefined || bar < SHORTEST_BAR) return line.trimEnd();
    return `${line}  ${barOf(tokensOf(row.usage) / most, bar)}`.trimEnd();
  });
}

/** A row of the table in several lines: its names, and below them the figures. */
function stacked(names: readonly string[], [count = '', ...figures]: readonly string[], width: number): string[] {
  const parts = [count, ...figures.map((figure, index) => `${FIGURES[index]} ${figure}`)];
  return [...filled(names, '  ', width), ...filled(parts, ', ', width - 2).map((line) => `  ${line}`)];
}

/** The parts in as few lines as they fit in. */
function filled(parts: readonly string[], between: string, width: number): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const longer = `${lines.at(-1)}${between}${part}`;
    if (lines.length > 0 && cells(longer) <= width) lines[lines.length - 1] = longer;
    else lines.push(cutTo(part, width));
  }
  return lines;
}

/** Null: the agent reports nothing. */
function known(usage: Usage): string | null {
  return tokensOf(usage) === 0 && usage.modelCalls === 0 && costText(usage) === null ? null : usageLine(usage);
}

function padded(text: string, width: number, isName: boolean): string {
  const space = ' '.repeat(width - cells(text));
  return isName ? text + space : space + text;
}

/** `share`: from 0 to 1, in eighths of a column; never empty when it is above 0. */
function barOf(share: number, columns: number): string {
  const eighths = share > 0 ? Math.max(1, Math.round(share * columns * 8)) : 0;
  return '█'.repeat(Math.floor(eighths / 8)) + (['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8] ?? '');
}

function short(count: number): string {
  if (count < 10_000) return String(count);
  return count < 1_000_000 ? `${(count / 1_000).toFixed(1)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}
