import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { ERROR_CODES, ThroughlineError } from '../../../../../core/errors.ts';
import { isObject, type Prompt } from '../../../../../core/turn/content.ts';
import { shellWord } from '../../../../../core/turn/quoted.ts';
import type { Cli } from '../../../cli.ts';

/**
 * Sends in a separate process that outlives this one: the same command without `--detach`. Its first line says that the turn
 * is accepted; after that it needs no reader. Resolves then, or throws what went wrong before.
 */
export async function sendDetached(
  command: Command,
  key: string,
  prompt: string | Prompt,
  { output }: Cli,
): Promise<void> {
  const [, program = ''] = process.argv;
  // The prompt goes through stdin: as an argument it could be too long. Files are in it, and are not read again.
  const args = ['send', ...sameOptions(command), '--blocks', '--json', '--', key];
  const child = spawn(process.execPath, [...process.execArgv, program, ...args], { detached: true, stdio: 'pipe' });
  output.waitFor('handing over the prompt …');
  child.stdin.on('error', () => {}).end(JSON.stringify(prompt));
  // Its error message may arrive after the end of its output.
  const closed = new Promise((resolve) => child.once('close', resolve));
  const errors: string[] = [];
  child.stderr.setEncoding('utf8').on('data', (text: string) => errors.push(text));
  for await (const line of createInterface({ input: child.stdout })) {
    const event = JSON.parse(line);
    child.stdout.destroy();
    child.stderr.destroy();
    child.unref();
    output.result(event, event.turnId);
    output.note(`turn ${event.payload.n} is accepted; "throughline follow ${shellWord(key)}" shows it`);
    return;
  }
  await closed;
  throw failureIn(errors.join(''));
}

const NOT_PASSED_ON = ['--detach', '--json', '--file', '--image'];

/** The options of this command line, its own and the global ones, as arguments of another. */
function sameOptions(command: Command): string[] {
  const levels = command.parent ? [command.parent, command] : [command];
  return levels.flatMap((level) =>
    level.options.flatMap((option) => {
      const value: unknown = level.getOptionValue(option.attributeName());
      if (value === undefined || NOT_PASSED_ON.includes(option.long ?? '')) return [];
      return [value].flat().map((one) => (one === true ? `${option.long}` : `${option.long}=${one}`));
    }),
  );
}

function failureIn(text: string): ThroughlineError {
  for (const line of text.split('\n')) {
    try {
      const { error } = JSON.parse(line);
      if (isObject(error) && ERROR_CODES.some((code) => code === error.code)) {
        const hint = typeof error.hint === 'string' ? { hint: error.hint } : {};
        return new ThroughlineError(error.code as (typeof ERROR_CODES)[number], String(error.message), hint);
      }
    } catch {
      // Not JSON, so not a line of ours.
    }
  }
  return new ThroughlineError('internal', 'The background process ended before it accepted the turn.');
}
