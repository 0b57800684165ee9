import type { Command } from 'commander';
import type { AgentTraits } from '../../../core/traits.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { styled } from '../output.ts';
import { oneLine } from '../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command.action(() => agents(cli));
  command.addHelpText(
    'after',
    '\nAgents are set in throughline.config.json. One that is missing is listed with what to do.',
  );
  addExamples(command, 'throughline agents', "throughline agents --json | jq 'select(.traits == null)'");
}

async function agents({ output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    for (const agent of await engine.agents()) {
      if (output.json) {
        output.value(agent);
        continue;
      }
      const { name, adapter, isDefault, traits, problem } = agent;
      const state = traits === null ? styled('red', oneLine(problem ?? 'not available')) : traitsLine(traits);
      output.line(styled('bold', oneLine(name)), ` (${adapter}${isDefault ? ', default' : ''}): `, state);
    }
    return DONE;
  });
}

function traitsLine(traits: AgentTraits): string {
  const can = (['resume', 'load', 'list', 'rehydrate', 'noTools', 'position'] as const).filter(
    (trait) => traits[trait],
  );
  return `version ${oneLine(traits.version)}, ids ${traits.id}, window ${traits.window} tokens; ${can.join(', ') || 'nothing more'}`;
}
