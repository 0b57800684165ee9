import { setTimeout as delay } from 'node:timers/promises';
import { ThroughlineError } from '../../core/errors.ts';
import type { PublicEvent } from '../../core/public/event.ts';
import type { PublicTurn } from '../../core/public/turn.ts';
import type { PermissionMode } from '../../core/turn.ts';
import type { Engine, Submitted } from '../../ports/engine.ts';
import type { Cli } from './cli.ts';
import { EXIT, exitOfTurn } from './exit-codes.ts';
import type { Output } from './output.ts';
import { PermissionClerk } from './permission-clerk.ts';
import { onStopSignals } from './stop-signals.ts';
import { TurnView } from './turn-view.ts';
import { noteWhenWaiting } from './waiting-note.ts';

/** How long a killed engine may take before we leave without it. */
const KILL_MS = 3_000;

/** Shows an accepted turn until it ends, whoever runs it, and resolves with the exit code that it amounts to. */
export async function watchTurn(
  engine: Engine,
  submitted: Submitted,
  { output }: Cli,
  permissions: PermissionMode,
): Promise<number> {
  const { turn, seq } = submitted;
  const view = new TurnView(output);
  const clerk = new PermissionClerk(engine, output, permissions);
  const leaving = new AbortController();
  const stopListening = stopOnSignals(engine, turn, output, leaving);
  const started = noteWhenWaiting(engine, turn, output);
  try {
    for await (const event of events(engine, turn, seq - 1, leaving.signal)) {
      // Turns before ours may still be running. A program gets every event, and with it numbers without gaps.
      if (output.json) output.value(event);
      if (event.turnId !== turn.id) continue;
      if (event.kind !== 'turn.queued') started();
      view.see(event);
      clerk.see(event);
      if (event.kind !== 'turn.ended') continue;
      const { outcome, failure, reply } = event.payload;
      if (output.json) {
        // An engine that is being closed may no longer tell; then the turn is shown as it was accepted.
        const now = await engine.turn(turn.id).catch(() => turn);
        output.value({ kind: 'result', turn: now, reply, receipt: view.receipt });
      }
      if (failure) output.failure({ ...failure, message: `Turn ${turn.n}: ${failure.message}` });
      return exitOfTurn(outcome, failure);
    }
  } finally {
    started();
    clerk.close();
    stopListening();
  }
  const hint = `"throughline follow ${turn.conversationId}" shows what becomes of it.`;
  output.failure({ code: 'interrupted', message: `Stopped before the end of turn ${turn.n}.`, hint });
  return EXIT.interrupted;
}

/** The first Ctrl-C cancels the turn, the second leaves at once; SIGTERM gives it a while to end. */
function stopOnSignals(engine: Engine, turn: PublicTurn, output: Output, leaving: AbortController): () => void {
  return onStopSignals({
    cancel() {
      output.note('Cancelling; once more to kill.');
      // A turn that has just ended needs no cancelling.
      engine.cancel(turn.id).catch(() => {});
    },
    kill() {
      const closed = engine.close({ graceMs: 0 });
      void Promise.race([closed, delay(KILL_MS)]).finally(() => process.exit(EXIT.cancelled));
    },
    terminate() {
      output.note('Coming to an end.');
      void engine.close().finally(() => leaving.abort());
    },
  });
}

/** Events until we leave; that an engine was closed for leaving is no fault. */
async function* events(
  engine: Engine,
  { conversationId }: PublicTurn,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<PublicEvent> {
  try {
    yield* engine.follow(conversationId, { after, signal });
  } catch (error) {
    if (!(error instanceof ThroughlineError && error.code === 'closed')) throw error;
  }
}
