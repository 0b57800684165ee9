import type { Command } from 'commander';
import type { Engine } from '../../../ports/engine.ts';
import type { Cli } from '../cli.ts';
import { eventLine } from '../event-line.ts';
import { addExamples } from '../examples.ts';
import { DONE, EXIT } from '../exit-codes.ts';
import { wholeNumber } from '../option-values.ts';
import { styled } from '../output.ts';
import { onStopSignals } from '../stop-signals.ts';

interface FollowFlags {
  readonly after: number;
  readonly untilIdle?: boolean;
}

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .option('--after <n>', 'begin after the event of this number', wholeNumber, 0)
    .option('--until-idle', 'end when no turn is open')
    .action((key: string, flags: FollowFlags) => follow(key, flags, cli));
  command.addHelpText(
    'after',
    '\nEvents are numbered without gaps: go on later with --after and the last number seen.',
  );
  addExamples(command, 'throughline follow notes', 'throughline follow notes --after 42 --until-idle --json');
}

async function follow(key: string, { after, untilIdle }: FollowFlags, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const { id } = await engine.conversation(key);
    const stop = new AbortController();
    let exitCode = DONE;
    const leave = (code: number) => {
      exitCode = code;
      stop.abort();
    };
    const stopListening = onStopSignals({
      cancel: () => leave(EXIT.cancelled),
      kill: () => process.exit(EXIT.cancelled),
      terminate: () => leave(EXIT.interrupted),
    });
    output.gone.addEventListener('abort', () => stop.abort());
    try {
      let last = untilIdle ? await lastWhenIdle(engine, id) : null;
      if (last !== null && after >= last) return DONE;
      for await (const event of engine.follow(id, { after, signal: stop.signal })) {
        if (output.json) output.value(event);
        else output.line(styled('dim', `${String(event.seq).padStart(5)}  `), eventLine(event));
        // Looked at again at the last one: a turn may have come meanwhile.
        const mayBeLast = event.kind === 'turn.ended' || (last !== null && event.seq >= last);
        if (untilIdle && mayBeLast) last = await lastWhenIdle(engine, id);
        if (last !== null && event.seq >= last) break;
      }
      return exitCode;
    } finally {
      stopListening();
    }
  });
}

/** The number of the last event, when no turn is open; null: one is. */
async function lastWhenIdle(engine: Engine, id: string): Promise<number | null> {
  const { open } = await engine.summary(id);
  return open > 0 ? null : (await engine.conversation(id)).lastSeq;
}
