import { setTimeout as delay } from 'node:timers/promises';
import { type Failure, ThroughlineError } from '../../core/errors.ts';
import type { ConversationEvent } from '../../core/event.ts';
import type { PermissionMode } from '../../core/turn.ts';
import type { Engine, Submitted } from '../../ports/engine.ts';
import type { Cli } from './cli.ts';
import { EXIT, exitOfTurn } from './exit-codes.ts';
import { PermissionClerk } from './permission-clerk.ts';
import { onStopSignals } from './stop-signals.ts';
import { TurnView } from './turn-view.ts';

/** How long a killed engine may take before we leave without it. */
const KILL_MS = 3_000;

/** Shows an accepted turn until it ends, whoever runs it, and resolves with the exit code that it amounts to. */
export async function watchTurn(
  engine: Engine,
  { turn, seq }: Submitted,
  { output }: Cli,
  permissions: PermissionMode,
): Promise<number> {
  const view = new TurnView(output);
  const clerk = new PermissionClerk(engine, output, permissions);
  const leave = new AbortController();
  let exitWhenLeaving = EXIT.interrupted;
  const stopListening = onStopSignals({
    cancel() {
      output.note('Cancelling; once more to kill.');
      // A turn that has just ended needs no cancelling.
      engine.cancel(turn.id).catch(() => {});
    },
    kill() {
      exitWhenLeaving = EXIT.cancelled;
      void Promise.race([engine.close({ graceMs: 0 }), delay(KILL_MS)]).finally(() => process.exit(EXIT.cancelled));
    },
    terminate() {
      output.note('Coming to an end.');
      void engine.close().finally(() => leave.abort());
    },
  });
  try {
    for await (const event of following(engine, turn.conversation, seq - 1, leave.signal)) {
      // Turns before ours may still be running: they are not what was asked for.
      if (event.turn !== turn.id) continue;
      view.show(event);
      clerk.see(event);
      if (event.kind !== 'turn.ended') continue;
      const { outcome, failure, reply } = event.payload;
      if (output.json) {
        output.value({ kind: 'result', turn: await engine.turn(turn.id), reply, receipt: view.receipt });
      }
      if (failure) output.failure(sentence(failure, turn.n));
      return exitOfTurn(outcome, failure);
    }
    throw new ThroughlineError('interrupted', `Stopped before the end of turn ${turn.n}.`, {
      hint: `"throughline follow ${turn.conversation}" shows what becomes of it.`,
    });
  } catch (error) {
    if (!leave.signal.aborted && exitWhenLeaving === EXIT.interrupted) throw error;
    return exitWhenLeaving;
  } finally {
    clerk.close();
    stopListening();
  }
}

/** Events until we leave; reading from an engine that was closed for leaving is no fault. */
async function* following(
  engine: Engine,
  conversation: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<ConversationEvent> {
  try {
    yield* engine.follow(conversation, { after, signal });
  } catch (error) {
    if (!(error instanceof ThroughlineError && error.code === 'closed')) throw error;
  }
}

function sentence(failure: Failure, n: number): Failure {
  return { ...failure, message: `Turn ${n}: ${failure.message}` };
}
