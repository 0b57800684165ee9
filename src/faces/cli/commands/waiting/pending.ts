import type { Command } from 'commander';
import { titleOf } from '../../../../core/turn/content.ts';
import { inPages } from '../../../../flow/pages.ts';
import type { PendingTurn } from '../../../../ports/engine.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { time } from '../../lines.ts';
import { styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command
    .option('--delivered <turn>', 'the answer of this turn (its id) was delivered: take it off the list')
    .action(({ delivered }: { delivered?: string }) => (delivered === undefined ? list(cli) : report(delivered, cli)));
  addHelp(command, {
    about:
      'Lists the turns that were sent with "--deliver-to" and whose answers are not reported as delivered, oldest first, whether ' +
      'they have ended or not. A program that crashed between accepting a prompt and delivering the answer finds its turns here.',
    examples: [
      'throughline pending',
      "throughline pending --json | jq -r '.turn | [.id, .state, .options.deliverTo] | @tsv'",
      'throughline pending --delivered 0198c5d2-6e0b-7cc3-98c5-d26e0b7cc398',
    ],
  });
}

async function list({ output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const all = inPages<PendingTurn>((last) => engine.pending(last && { after: last.turn.id }));
    const show = ({ turn: { id, state, options, prompt, createdAt } }: PendingTurn) =>
      output.line(
        styled('bold', id),
        `  ${state}, for ${oneLine(options.deliverTo ?? '')}, ${time(createdAt)}  ${oneLine(titleOf(prompt))}`,
      );
    await output.each(all, show, 'No answer waits to be delivered.');
  });
}

async function report(id: string, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const turn = await engine.delivered(id);
    output.result(turn, `turn ${turn.n} was delivered to ${oneLine(turn.options.deliverTo ?? '')}`);
  });
}
