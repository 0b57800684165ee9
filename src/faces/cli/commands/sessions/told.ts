import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import type { PublicTold } from '../../../../core/public/turn.ts';
import type { ToldPart } from '../../../../core/restore/told.ts';
import { promptText } from '../../../../core/turn/content.ts';
import { shellWord } from '../../../../core/turn/quoted.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { findTurn, positiveNumber } from '../../input.ts';
import { time } from '../../lines.ts';
import { styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';

interface Flags {
  readonly attempt?: number;
}

export function define(command: Command, cli: Cli): void {
  command
    .argument('<turn>', 'the id of a turn, or a conversation: its key or id')
    .argument(
      '[number]',
      'the number of the turn in that conversation (default: the last one that has ended)',
      positiveNumber,
    )
    .option('--attempt <number>', 'of this attempt (default: the last one that was sent)', positiveNumber)
    .action((turn: string, n: number | undefined, flags: Flags) => told(turn, n, flags, cli));
  addHelp(command, {
    about:
      "Shows exactly what the agent's session received for a turn: the transcript that was put into its storage, the prompts that were " +
      'replayed, and last the prompt itself, with the transcript block before it. Each part has a SHA-256 hash, which was checked. The hash ' +
      'of a transcript is that of its text; the hash of a prompt is that of the JSON of its content blocks (see --json).',
    examples: [
      'throughline told notes',
      'throughline told notes 3',
      "throughline told notes 3 --json | jq '.parts[-1].content'",
    ],
  });
}

async function told(name: string, n: number | undefined, flags: Flags, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const turn = await findTurn(engine, name, n);
    if (turn === null) throw noSuchTurn(name, n);
    const found = await engine.told(turn.id, flags);
    if (output.json) output.value(found);
    output.note(styled('dim', headingOf(found)));
    for (const part of output.json ? [] : found.parts) {
      output.note(styled('cyan', `─── ${titleOf(part)}, sha256 ${part.sha256}`));
      output.line(part.as === 'transcript' ? part.text.trimEnd() : promptText(part.content));
    }
  });
}

function headingOf({ turnId, attempt, rung, sessionId, at }: PublicTold): string {
  const session = sessionId === null ? 'a session without a name' : `session ${oneLine(sessionId)}`;
  return `turn ${turnId}, attempt ${attempt}: told to ${session} by ${rung}, ${time(at)}`;
}

function titleOf(part: ToldPart): string {
  return part.as === 'transcript' ? "written into the agent's storage" : `prompt of turn ${part.turn}`;
}

function noSuchTurn(name: string, n: number | undefined): ThroughlineError {
  const which = n === undefined ? 'turn that was sent and has ended' : `turn ${n}`;
  return new ThroughlineError('not_found', `The conversation has no ${which}.`, {
    hint: `"throughline show ${shellWord(name)}" lists its turns.`,
  });
}
