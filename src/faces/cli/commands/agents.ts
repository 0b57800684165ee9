import type { Command } from 'commander';
import type { AgentTraits } from '../../../core/traits.ts';
import type { AgentInfo } from '../../../ports/engine.ts';
import { defineInstall } from '../agents-install.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { type Output, styled } from '../output.ts';
import { oneLine } from '../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command.action(() => agents(cli));
  command.addHelpText(
    'after',
    '\nAgents are set in throughline.config.json; without it, Claude is used where it is found. One that is missing is listed\n' +
      'with what to do.',
  );
  addExamples(
    command,
    'throughline agents',
    'throughline agents install claude',
    "throughline agents --json | jq 'select(.traits == null)'",
  );
  defineInstall(command, cli);
}

async function agents({ output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const all = await engine.agents();
    for (const agent of all) {
      if (output.json) output.value(agent);
      else show(agent, output);
    }
    if (!all.some(({ adapter }) => adapter.startsWith('claude'))) {
      output.note(styled('dim', 'claude is not among them; "throughline agents install claude" brings it.'));
    }
    return DONE;
  });
}

function show({ name, adapter, isDefault, where, traits, problem }: AgentInfo, output: Output): void {
  const state = traits === null ? styled('red', oneLine(problem ?? 'not available')) : traitsLine(traits);
  output.line(styled('bold', oneLine(name)), ` (${adapter}${isDefault ? ', default' : ''}): `, state);
  if (where !== null) output.line('  ', styled('dim', oneLine(where)));
}

function traitsLine(traits: AgentTraits): string {
  const can = (['resume', 'load', 'list', 'rehydrate', 'noTools', 'position'] as const).filter(
    (trait) => traits[trait],
  );
  return `version ${oneLine(traits.version)}, ids ${traits.id}, window ${traits.window} tokens; ${can.join(', ') || 'nothing more'}`;
}
