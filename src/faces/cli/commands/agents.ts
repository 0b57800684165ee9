import type { Command } from 'commander';
import { defineInstall } from '../agents-install.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { styled } from '../output.ts';
import { showAgent } from '../show-agent.ts';

export function define(command: Command, cli: Cli): void {
  command.action(() => agents(cli));
  command.addHelpText(
    'after',
    '\nAgents are set in throughline.config.json; without it, Claude is used where it is found. One that is missing is listed\n' +
      'with what to do. Each is started to see whether somebody is logged in; no model is asked.',
  );
  addExamples(
    command,
    'throughline agents',
    'throughline agents install claude',
    "throughline agents --json | jq 'select(.login.loggedIn == false)'",
  );
  defineInstall(command, cli);
}

async function agents({ output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const all = await engine.agents({ login: true });
    for (const agent of all) {
      if (output.json) output.value(agent);
      else showAgent(agent, output);
    }
    if (!all.some(({ adapter }) => adapter.startsWith('claude'))) {
      output.note(styled('dim', 'claude is not among them; "throughline agents install claude" brings it.'));
    }
    return DONE;
  });
}
