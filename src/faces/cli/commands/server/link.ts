import type { Command } from 'commander';
import { PAGE_SCOPES, type PageScope } from '../../../../core/key.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { pageScopes } from '../../input.ts';
import { oneLine } from '../../terminal-text.ts';

interface LinkFlags {
  readonly scopes?: PageScope[];
  readonly address?: boolean;
}

export function define(command: Command, cli: Cli): void {
  command
    .option('--scopes <list>', `what the browser may do: ${PAGE_SCOPES.join(', ')} (default: everything)`, pageScopes)
    .option('--address', 'print only the address of the server, for programs that have a key')
    .action(({ scopes, address = false }: LinkFlags) => (address ? printAddress(cli) : link(scopes, cli)));
  addHelp(command, {
    about:
      'The link comes from the running server of the data home, and opens its page. The browser then acts for the owner that --as names, ' +
      'only with these scopes, for a week. A link for another owner than that of the server needs --scopes. "read" reads, "prompt" sends ' +
      'prompts to agents, "approve" answers their questions, "admin" erases, and gives access to the machine. For programs, create a key ' +
      'instead ("throughline keys create").',
    examples: [
      'throughline link',
      'xdg-open "$(throughline link --quiet)"',
      'throughline link --as ann --scopes read,prompt,approve',
      'throughline link --scopes read',
      'curl -H "Authorization: Bearer $KEY" "$(throughline link --address)/v1/conversations"',
    ],
  });
}

async function link(wanted: PageScope[] | undefined, { parts, output, options, waits }: Cli): Promise<void> {
  output.waitFor(waits);
  const made = await parts.link(options, wanted);
  output.result(made, made.link);
  const who = `as "${oneLine(made.owner)}", with the scopes ${made.scopes.join(', ')}`;
  output.note(`The link opens the page and signs one browser in, within 15 minutes, ${who}.`);
}

/** The server of the data home answers for it, so a key of this data home is never sent to another program that has the usual port. */
async function printAddress({ parts, output, options, waits }: Cli): Promise<void> {
  output.waitFor(waits);
  const { origin } = new URL((await parts.link(options, undefined)).link);
  output.result({ address: origin }, origin);
}
