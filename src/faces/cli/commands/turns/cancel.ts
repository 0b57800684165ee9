import type { Command } from 'commander';
import { hasCode, ThroughlineError } from '../../../../core/errors.ts';
import type { PublicTurn } from '../../../../core/public/turn.ts';
import { hasEnded } from '../../../../core/turn/turn.ts';
import { inPages } from '../../../../flow/pages.ts';
import type { Engine } from '../../../../ports/engine.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { orNull } from '../../input.ts';
import { strandedLine } from '../../lines.ts';
import { oneLine } from '../../terminal-text.ts';

/** How long we wait for the process that runs a turn to end it. */
const WAIT_MS = 10_000;

export function define(command: Command, cli: Cli): void {
  command
    .argument('<turn>', 'the id of a turn, or a conversation (key or id) to stop all its open turns')
    .action((target: string) => cancel(target, cli));
  addHelp(command, {
    examples: ['throughline cancel notes', 'throughline cancel 0198c5d2-6e0b-7cc3-98c5-d26e0b7cc398 --json'],
  });
}

async function cancel(target: string, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const turns = await turnsOf(engine, target);
    // The last one first: otherwise the next turn would start as soon as the turn before it has ended.
    for (const turn of turns.toReversed()) await engine.cancel(turn.id);
    for (const turn of turns) {
      const now = hasEnded(turn.state) ? turn : await ended(engine, turn);
      const before = hasEnded(turn.state) ? 'had already ended: ' : '';
      output.result(now, hasEnded(now.state) ? `turn ${now.n} ${before}${now.state}` : notEnded(now));
    }
    if (turns.length === 0) output.note('The conversation has no open turn.');
  });
}

function notEnded({ n, stranded }: PublicTurn): string {
  const why = stranded === null ? '' : `. ${oneLine(strandedLine(stranded))}`;
  return `turn ${n} was asked to stop, but has not ended yet${why}`;
}

/** A turn by its id, else the open turns of a conversation: those after its head. */
async function turnsOf(engine: Engine, target: string): Promise<PublicTurn[]> {
  const turn = await orNull(engine.turn(target));
  if (turn !== null) return [turn];
  const conversation = await orNull(engine.conversation(target));
  if (conversation === null) {
    throw new ThroughlineError('not_found', `There is no turn and no conversation "${target}".`, {
      hint: 'See "throughline list" and "throughline show KEY".',
    });
  }
  const { id, head } = conversation;
  const later = await Array.fromAsync(inPages<PublicTurn>((last) => engine.turns(id, { after: last?.n ?? head })));
  return later.filter(({ state }) => !hasEnded(state));
}

/** The turn when it has ended, or as it is after the wait. */
async function ended(engine: Engine, { id }: PublicTurn): Promise<PublicTurn> {
  await engine.answerOf(id, { waitMs: WAIT_MS }).catch((error: unknown) => {
    if (!hasCode(error, 'conflict')) throw error;
  });
  return engine.turn(id);
}
