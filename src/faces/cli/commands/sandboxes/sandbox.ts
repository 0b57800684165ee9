import type { Command } from 'commander';
import { given } from '../../../../core/input/arguments.ts';
import { inPages } from '../../../../core/input/pages.ts';
import type { PublicSandbox, SandboxView } from '../../../../core/public/sandbox.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { time } from '../../lines.ts';
import { styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command.helpCommand(false);
  const listing = command
    .command('list', { isDefault: true })
    .summary('list sandboxes, newest first')
    .description('List sandboxes, newest first.')
    .action(() => list(cli));
  addHelp(listing, { examples: ['throughline sandbox list', "throughline sandbox list --json | jq -r '.id'"] });
  const showing = command
    .command('show')
    .summary('show a sandbox: what was set up, and who works in it')
    .description('Show a sandbox: what was set up, and the conversations that work in it with their sessions.')
    .argument('<sandbox>', 'its name or id')
    .action((sandbox: string) => show(sandbox, cli));
  addHelp(showing, { examples: ['throughline sandbox show website', 'throughline sandbox show website --json'] });
  addHelp(command, {
    about:
      'A sandbox is where the agent of a conversation works. A conversation has its own one, or shares one by its name with others of the ' +
      'same owner.',
    examples: ['throughline sandbox', 'throughline sandbox show website'],
  });
}

async function list({ output, lookAt }: Cli): Promise<void> {
  await lookAt(async ({ sandboxes }) => {
    const all = inPages<PublicSandbox>((last) => sandboxes.list(given({ before: last?.id })));
    await output.each(all, (sandbox) => output.line(...line(sandbox)), 'There are no sandboxes yet.');
    return undefined;
  });
}

function line({ id, name, state, usedAt, conversations }: PublicSandbox) {
  const in_ = `${conversations} ${conversations === 1 ? 'conversation' : 'conversations'}`;
  return [
    styled('bold', id),
    `  ${state}, ${in_}, used ${time(usedAt)}`,
    styled('dim', name ? `  ${oneLine(name)}` : ''),
  ];
}

async function show(idOrName: string, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async ({ sandboxes }) => {
    const found = await sandboxes.show(idOrName);
    if (output.json) output.value(found);
    else for (const one of shown(found)) output.line(...one);
    return undefined;
  });
}

function* shown({ sandbox, setup, uses }: SandboxView) {
  yield line(sandbox);
  for (const { name, code, ms, output } of setup) {
    const how =
      code === 0 ? styled('green', 'done') : styled('red', code === null ? 'not ended' : `failed with ${code}`);
    yield ['  set-up ', styled('bold', oneLine(name)), ' ', how, ` in ${ms} ms`];
    if (code !== 0 && output !== '') yield [`    ${oneLine(output)}`];
  }
  for (const { conversation, session } of uses) {
    yield [`  conversation ${conversation}, `, session === null ? 'no session yet' : `session ${oneLine(session)}`];
  }
}
