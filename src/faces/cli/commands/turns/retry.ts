import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { given } from '../../../../core/input/arguments.ts';
import type { PermissionMode } from '../../../../core/turn/turn.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { findTurn } from '../../input.ts';
import { holdStopSignals } from '../../stop-signals.ts';
import { watchTurn } from './watch-turn.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<turn>', 'the id of an ended turn, or a conversation (key or id) to retry its last turn')
    .option('--request-id <id>', 'makes a repeated command safe: the same id is the same new turn')
    .action((turn: string, flags: { requestId?: string }) => retry(turn, flags, cli));
  addHelp(command, {
    about:
      'This starts a new turn: what the first one did is not undone, and tools may run again. The output is the same as that of ' +
      '"throughline send".',
    examples: ['throughline retry notes', 'throughline retry 0198c5d2-6e0b-7cc3-98c5-d26e0b7cc398 --request-id again'],
  });
}

async function retry(name: string, flags: { requestId?: string }, cli: Cli): Promise<void> {
  await cli.withEngine(async (engine) => {
    const turn = await findTurn(engine, name);
    if (turn === null) throw new ThroughlineError('invalid', `The conversation "${name}" has no ended turn yet.`);
    using _held = holdStopSignals(cli.output);
    const submitted = await engine.retry(turn.id, given(flags));
    // Questions are handled as in the first turn. If that turn had no mode, the settings decide.
    const permissions: PermissionMode = submitted.turn.options.permissions ?? 'ask';
    return await watchTurn(engine, submitted, cli, permissions);
  });
}
