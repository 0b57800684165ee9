import type { Failure, ThroughlineError } from '../core/errors.ts';
import { escapedChar, withoutInvisible } from '../core/input/visible.ts';
import type { Clock } from '../ports/clock.ts';

/* Messages on stderr for what no caller is told: bugs of this program, and storage that cannot be written. */

/** One line; with THROUGHLINE_DEBUG the stack as well. */
export function reportBug(error: unknown, where: string): void {
  process.stderr.write(bugReport(error, where, Boolean(process.env.THROUGHLINE_DEBUG)));
}

export function bugReport(error: unknown, where: string, withStack: boolean): string {
  const stack = withStack && error instanceof Error ? error.stack : undefined;
  const detail = stack ?? String(error).replaceAll('\n', ' ');
  return line(`Internal error while ${where}: ${detail}`);
}

/**
 * The text may quote an agent, or the name of a file. So control characters are removed, and invisible ones are escaped: they could
 * control the terminal.
 */
function line(text: string): string {
  return `throughline: ${withoutInvisible(text.replaceAll(CONTROLS, ''), escapedChar)}\n`;
}

/** All control characters but newline and tab. */
const CONTROLS = /[^\P{Cc}\n\t]/gu;

/** The storage cannot be written just now; accepted turns wait for it. */
export function reportTrouble({ message, hint }: ThroughlineError): void {
  process.stderr.write(line(`Waiting for the storage. ${message}${hint === undefined ? '' : ` ${hint}`}`));
}

/** Stored data is missing or damaged: a list may then be incomplete. Other failures are reported to the caller that they affect. */
export function reportLoss({ code, message, hint }: Failure, gone: boolean): void {
  if ((code === 'storage_lost' || code === 'storage_damaged') && !gone)
    process.stderr.write(line(`${message} ${hint}`));
}

/** What a person should know although nothing has failed. */
export function reportNote(note: string): void {
  process.stderr.write(line(note));
}

/** Reports an error at once, and repeats it only every `everyMs` while it lasts. An error of `tell` is reported as a bug. */
export function seldom(
  tell: (error: ThroughlineError) => void,
  clock: Clock,
  everyMs = 30_000,
): (error: ThroughlineError) => void {
  const told = new Map<string, number>();
  return (error) => {
    const now = clock.monotonic();
    const what = `${error.code} ${error.message}`;
    if (now - (told.get(what) ?? Number.NEGATIVE_INFINITY) < everyMs) return;
    told.set(what, now);
    try {
      tell(error);
    } catch (fault) {
      reportBug(fault, 'reporting that the storage cannot be written');
    }
  };
}
