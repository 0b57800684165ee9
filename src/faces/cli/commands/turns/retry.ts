import type { Command } from 'commander';
import { given } from '../../../../core/input/arguments.ts';
import type { PermissionMode } from '../../../../core/turn/turn.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { holdStopSignals } from '../../stop-signals.ts';
import { watchTurn } from './watch-turn.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<turn>', 'the id of an ended turn')
    .option('--request-id <id>', 'makes a repeated command safe: the same id is the same new turn')
    .action((turn: string, flags: { requestId?: string }) => retry(turn, flags, cli));
  addHelp(command, {
    about:
      'This is a new turn: what the first one did is not undone, and tools may run again. The output is that of\n' +
      '"throughline send".',
    examples: [
      'throughline retry 0198c5d2-6e0b-7cc3-98c5-d26e0b7cc398',
      "throughline retry $(throughline show notes --json | jq -r '.turns[-1].id')",
    ],
  });
}

async function retry(id: string, flags: { requestId?: string }, cli: Cli): Promise<void> {
  await cli.withEngine(async (engine) => {
    holdStopSignals(cli.output);
    const submitted = await engine.retry(id, given(flags));
    // Questions of the new turn are treated as in the first one; where that one said nothing, as the settings say.
    const permissions: PermissionMode = submitted.turn.options.permissions ?? 'ask';
    return watchTurn(engine, submitted, cli, permissions);
  });
}
