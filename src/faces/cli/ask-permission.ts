import { denyOption, type PermissionOption } from '../../core/permission.ts';
import { chooseOption } from './choose-option.ts';
import type { Output } from './output.ts';

export interface Question {
  readonly title: string;
  readonly options: readonly PermissionOption[];
}

/**
 * Asks the person at the terminal until the answer is one. Resolves with null when the signal aborts (somebody else
 * answered, or the question was withdrawn), and with a denial when the input ends.
 */
export async function askPermission(
  { title, options }: Question,
  { output, input, signal }: { output: Output; input: NodeJS.ReadableStream; signal: AbortSignal },
): Promise<string | null> {
  const { createInterface } = await import('node:readline');
  // Not as a terminal: then Ctrl-C stays a signal, and the same handlers see it as everywhere else.
  const lines = createInterface({ input, terminal: false });
  const stop = () => lines.close();
  signal.addEventListener('abort', stop, { once: true });
  try {
    output.ask(`The agent asks: ${title}`);
    const choices = options.map(({ name }, index) => `${index + 1} ${name}`).join('   ');
    output.ask(`  ${choices}   (or allow, deny)`);
    if (signal.aborted) return null;
    for await (const line of lines) {
      if (signal.aborted) return null;
      const chosen = chooseOption(options, line);
      if (chosen !== null) return chosen.optionId;
      output.ask(`  "${line}" is not one of them.`);
    }
    return signal.aborted ? null : (denyOption(options)?.optionId ?? null);
  } finally {
    signal.removeEventListener('abort', stop);
    lines.close();
  }
}
