import { setTimeout as delay } from 'node:timers/promises';
import { failureOf, ThroughlineError, unreachableTurn } from '../../../../core/errors.ts';
import type { Delayed } from '../../../../core/limits/slots.ts';
import { THIS_PROCESS } from '../../../../core/process.ts';
import type { PublicEvent } from '../../../../core/public/event.ts';
import type { PublicTurn } from '../../../../core/public/turn.ts';
import type { Stranded } from '../../../../core/turn/standing.ts';
import type { PermissionMode } from '../../../../core/turn/turn.ts';
import type { Engine, Submitted } from '../../../../ports/engine.ts';
import type { Cli } from '../../cli.ts';
import { EXIT, exitOfTurn } from '../../exit-codes.ts';
import { strandedLine } from '../../lines.ts';
import type { Output } from '../../output.ts';
import { onStopSignals } from '../../stop-signals.ts';
import { oneLine } from '../../terminal-text.ts';
import { PermissionClerk } from './permission-clerk.ts';
import { TurnView } from './turn-view.ts';

/** How long we wait for a killed engine before we leave. */
const KILL_MS = 3_000;

/** Shows an accepted turn until it ends, whichever process runs it, and resolves with its exit code. */
export async function watchTurn(
  engine: Engine,
  submitted: Submitted,
  cli: Cli,
  permissions: PermissionMode,
): Promise<number> {
  const { turn, seq } = submitted;
  const { output } = cli;
  const source = { engine, after: seq - 1 };
  const view = new TurnView(output);
  const clerk = new PermissionClerk(engine, output, permissions);
  const leaving = new AbortController();
  const stopListening = stopOnSignals(engine, turn, output, leaving);
  const started = noteWhenWaiting(engine, turn, output);
  try {
    for await (const event of events(source, turn, cli, leaving.signal)) {
      // Earlier turns may still be running. A program gets their events, too, so that the numbers have no gaps.
      if (output.json) output.value(event);
      if (event.turnId !== turn.id) continue;
      if (event.kind !== 'turn.queued') started();
      view.see(event);
      clerk.see(event);
      if (event.kind !== 'turn.ended') continue;
      const { outcome, failure, reply } = event.payload;
      if (output.json) {
        // A closing engine may not answer any more; then the turn is shown as it was accepted.
        const now = await source.engine.turn(turn.id).catch(() => turn);
        output.value({ kind: 'result', turn: now, reply, receipt: view.receipt, denied: clerk.denied });
      }
      if (failure) output.failure({ ...failure, message: `Turn ${turn.n}: ${failure.message}` });
      return exitOfTurn(outcome, failure);
    }
  } finally {
    started();
    clerk.close();
    stopListening();
  }
  const hint = `"throughline follow ${turn.conversationId}" shows how it continues.`;
  output.failure({ code: 'interrupted', message: `Stopped before turn ${turn.n} ended.`, hint });
  return EXIT.interrupted;
}

/** The first Ctrl-C cancels the turn, the second leaves at once. SIGTERM gives the turn a while to end. */
function stopOnSignals(engine: Engine, turn: PublicTurn, output: Output, leaving: AbortController): () => void {
  return onStopSignals({
    cancel() {
      output.note('Cancelling. Press Ctrl-C again to kill.');
      // Fails when the turn has just ended.
      engine.cancel(turn.id).catch(() => {});
    },
    kill() {
      const closed = engine.close({ graceMs: 0 });
      void Promise.race([closed, delay(KILL_MS)]).finally(() => process.exit(EXIT.cancelled));
    },
    terminate() {
      output.note('Stopping.');
      void engine.close().finally(() => leaving.abort());
    },
  });
}

/** Where the events of a turn come from: another engine when the first one is gone. */
interface Source {
  engine: Engine;
  /** The number of the last event that was shown. */
  after: number;
}

/** Events until we leave. An engine that was closed because we leave is no error. */
async function* events(source: Source, turn: PublicTurn, cli: Cli, signal: AbortSignal): AsyncGenerator<PublicEvent> {
  const over = new AbortController();
  const note = (stranded: Stranded) => cli.output.note(`Waiting: ${oneLine(strandedLine(stranded))}`);
  void watchStranded(lookAt(source.engine, turn), { everyMs: LOOK_MS, signal: over.signal }, note);
  try {
    yield* followed(source, turn, signal);
  } catch (error) {
    over.abort();
    const code = error instanceof ThroughlineError ? error.code : null;
    if (code === 'closed') return;
    if (code !== 'unreachable') throw error;
    yield* afterLoss(error as ThroughlineError, source, turn, cli, signal);
  } finally {
    over.abort();
  }
}

/** How often we check whether a process runs the turn: seldom while a server may run it, often when the server is gone. */
const LOOK_MS = 5_000;
const LOOK_AFTER_LOSS_MS = 1_000;

const lookAt = (engine: Engine, turn: PublicTurn) => async () => (await engine.turn(turn.id)).stranded;

/**
 * Polls, and calls back once for each reason why nobody runs what is open. A reason counts when it was found twice in a row: another
 * process may be about to begin.
 */
export async function watchStranded<T extends Stranded | Delayed>(
  look: () => Promise<T | null>,
  { everyMs, signal }: { readonly everyMs: number; readonly signal: AbortSignal },
  onStranded: (stranded: T) => void,
): Promise<void> {
  let [before, told]: (string | null)[] = [null, null];
  while (!signal.aborted) {
    // The stream of events fails for the same reason, and reports it.
    const stranded = await look().catch(() => null);
    const now = stranded?.message ?? null;
    if (stranded !== null && now === before && now !== told && !signal.aborted) {
      told = now;
      onStranded(stranded);
    }
    before = now;
    await delay(everyMs, undefined, { signal, ref: false }).catch(() => {});
  }
}

async function* followed(source: Source, { conversationId }: PublicTurn, signal: AbortSignal) {
  for await (const event of source.engine.follow(conversationId, { after: source.after, signal })) {
    source.after = event.seq;
    yield event;
  }
}

/**
 * The server was away for too long. If the data home is on this machine, this process reads the turn there. A turn that has ended, or
 * that another process runs, is shown to its end. For a turn that nobody runs, the error says what to do.
 */
async function* afterLoss(
  lost: ThroughlineError,
  source: Source,
  turn: PublicTurn,
  { parts, options, output }: Cli,
  signal: AbortSignal,
): AsyncGenerator<PublicEvent> {
  const onTrouble = (trouble: ThroughlineError) => output.waiting(failureOf(trouble));
  const engine = await parts.open({ ...options, onTrouble }).catch(() => null);
  if (engine === null) throw unreachableTurn(lost, turn);
  const over = new AbortController();
  let nobody: Stranded | null = null;
  const leave = (stranded: Stranded) => {
    nobody = stranded;
    over.abort();
  };
  try {
    nobody = await lookAt(engine, turn)();
    if (nobody === null) {
      output.note(`${lost.message} Looking at the data home itself.`);
      source.engine = engine;
      // The process that runs it may leave it, for example a command that only finishes an earlier turn.
      void watchStranded(lookAt(engine, turn), { everyMs: LOOK_AFTER_LOSS_MS, signal: over.signal }, leave);
      yield* followed(source, turn, AbortSignal.any([signal, over.signal]));
    }
    if (nobody !== null) throw unreachableTurn(lost, turn, strandedLine(nobody));
  } finally {
    over.abort();
    await engine.close();
  }
}

/** A turn that has not started by then gets an explanation. */
const EXPLAIN_AFTER_MS = 2_000;

/** Says why a turn does not start. Call the returned function when it has started. */
function noteWhenWaiting(engine: Engine, turn: PublicTurn, output: Output): () => void {
  // If the reason cannot be found out, we still wait.
  const timer = setTimeout(() => void explainWait(engine, turn, output).catch(() => {}), EXPLAIN_AFTER_MS);
  return () => clearTimeout(timer);
}

async function explainWait(engine: Engine, turn: PublicTurn, output: Output): Promise<void> {
  const { lock, delayed } = await engine.summary(turn.conversationId);
  if (delayed !== null) return output.explainWait(oneLine(strandedLine(delayed)));
  if (lock !== null && lock.holder !== THIS_PROCESS)
    output.explainWait(`${lock.holder} holds the conversation and runs earlier turns first.`);
}
