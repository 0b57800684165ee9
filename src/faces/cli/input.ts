import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { hasCode, ThroughlineError, unreadable } from '../../core/errors.ts';
import { given } from '../../core/input/arguments.ts';
import { isDay } from '../../core/input/usage-page.ts';
import { PAGE_SCOPES, type PageScope, SCOPES, type Scope } from '../../core/key.ts';
import type { PublicTurn } from '../../core/public/turn.ts';
import type { Policy, Rung, TurnRestore } from '../../core/restore/restore-settings.ts';
import { POLICIES } from '../../core/restore/restore-settings.ts';
import type { Engine, SubmitOptions } from '../../ports/engine.ts';
import type { Output } from './output.ts';

/** What people give to a command: the values of its options, and text from stdin or from a file. */

export function wholeNumber(value: string): number {
  if (!/^\d{1,15}$/.test(value)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(value);
}

export function positiveNumber(value: string): number {
  const number = wholeNumber(value);
  if (number < 1) throw new InvalidArgumentError('It must be 1 or more.');
  return number;
}

export function seconds(value: string): number {
  const number = /^\d{1,9}(\.\d{1,3})?$/.test(value) ? Number(value) : 0;
  if (number <= 0) throw new InvalidArgumentError('It must be a number of seconds above 0.');
  return number;
}

/** A TCP port; 0 is any free one. */
export function portNumber(value: string): number {
  const number = wholeNumber(value);
  if (number > 65_535) throw new InvalidArgumentError('It must be 65535 or less.');
  return number;
}

/** A day of the usage statistics: UTC, year first. */
export function day(value: string): string {
  if (!isDay(value)) throw new InvalidArgumentError('It must be a day such as 2026-01-31.');
  return value;
}

/** As an absolute path: a server may do the work, and its working directory is another. */
export function directory(path: string): string {
  return resolve(path);
}

export const MEBIBYTE = 1_048_576;
/** The server accepts no more either. */
export const MOST_OF_PROMPT = 8 * MEBIBYTE;
/** The longest string that this process can hold. */
const MOST_OF_FILE = 500 * MEBIBYTE;

/** A goal as an argument gives it; `-` is all of stdin. */
export async function readPrompt(argument: string, output: Pick<Output, 'note'>): Promise<string> {
  if (argument !== '-') return argument;
  sayThatStdinIsRead(output, 'the goal');
  return readPromptOfStdin();
}

/** At a terminal, nothing else shows that the command waits for input. */
export function sayThatStdinIsRead(output: Pick<Output, 'note'>, what: string): void {
  if (process.stdin.isTTY) output.note(`Type ${what}, and press Ctrl-D at the end.`);
}

/** All of stdin, as the words of a prompt. Throws `too_large`, and `invalid` for bytes that are not UTF-8. */
export async function readPromptOfStdin(): Promise<string> {
  const bytes = await readStdin(MOST_OF_PROMPT, 'Write it to a file, and name the file in the prompt.');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new ThroughlineError('invalid', 'The input is not text in UTF-8.', {
      hint: 'Send an image or another file with --image or --file.',
      cause,
    });
  }
}

export function readStdin(most: number, hint?: string): Promise<Buffer> {
  return readUpTo(most, process.stdin, 'The input', hint);
}

/** Stdin, a pipe or a device may be endless, so no more is read than is accepted. `name`: the subject of the error message. */
export async function readUpTo(most: number, source: AsyncIterable<Buffer>, name: string, hint?: string) {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of source) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > most)
      throw new ThroughlineError('too_large', `${name} is larger than ${most / MEBIBYTE} MiB.`, { hint });
  }
  return Buffer.concat(chunks);
}

/** The text of a file; `-` is stdin. */
export async function readInput(file: string, output: Pick<Output, 'note'>): Promise<string> {
  if (file === '-') {
    sayThatStdinIsRead(output, 'the export');
    return (await readStdin(MOST_OF_FILE)).toString('utf8');
  }
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new ThroughlineError(code === 'ENOENT' ? 'not_found' : 'invalid', unreadable('file', file, code), { cause });
  }
}

/** Null: there is none (`not_found`). */
export async function orNull<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (hasCode(error, 'not_found')) return null;
    throw error;
  }
}

/** A turn by its id; else turn `n` of a conversation, or without `n` its last ended one. Null: the conversation has no such turn. */
export async function findTurn(engine: Engine, name: string, n?: number): Promise<PublicTurn | null> {
  const named = n === undefined ? await orNull(engine.turn(name)) : null;
  if (named !== null) return named;
  const { id, head } = await engine.conversation(name);
  const wanted = n ?? head;
  const [turn] = wanted === 0 ? [] : await engine.turns(id, { after: wanted - 1, limit: 1 });
  return turn?.n === wanted ? turn : null;
}

export function restoreOption(): Option {
  return new Option(
    '--restore <policy>',
    'required: fail if the context cannot be restored; auto: then start a fresh session; off: always start fresh',
  ).choices(POLICIES);
}

/** Undoes what the conversation or the settings prefer. */
export const NO_RUNG = 'none';

/** The options of `send` and `chat` about restoring and time. */
export interface TurnFlags extends Omit<TurnRestore, 'policy' | 'rung'> {
  readonly restore?: Policy;
  readonly rung?: Rung | typeof NO_RUNG;
  readonly timeLimit?: number;
  readonly stallLimit?: number;
}

export function turnOptions(flags: TurnFlags): Pick<SubmitOptions, 'restore' | 'limits'> {
  const { restore: policy, rung, rebuild, budgetTokens, lastTurns, allowTools, timeLimit, stallLimit } = flags;
  const preferred = rung === NO_RUNG ? null : rung;
  const restore: TurnRestore = given({ policy, rung: preferred, rebuild, budgetTokens, lastTurns, allowTools });
  const limits = given({ turnSeconds: timeLimit, stallSeconds: stallLimit });
  return {
    ...(Object.keys(restore).length > 0 && { restore }),
    ...(Object.keys(limits).length > 0 && { limits }),
  };
}

/** Separated by commas. */
export const scopes = (list: string): Scope[] => wordsOf(SCOPES, list);

/** The scopes that a browser can have, separated by commas. */
export const pageScopes = (list: string): PageScope[] => wordsOf(PAGE_SCOPES, list);

function wordsOf<T extends string>(known: readonly T[], list: string): T[] {
  return list.split(',').map((word) => {
    const found = known.find((one) => one === word.trim());
    if (found === undefined) throw new InvalidArgumentError(`Choose from ${known.join(', ')}.`);
    return found;
  });
}
