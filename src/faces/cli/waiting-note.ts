import type { Turn } from '../../core/turn.ts';
import type { Engine } from '../../ports/engine.ts';
import type { Output } from './output.ts';
import { oneLine } from './terminal-text.ts';

/** So long a turn may wait in silence. */
const PATIENCE_MS = 2_000;

/** Says why a turn does not start, when it does not. The function returned is called when it does. */
export function noteWhenWaiting(engine: Engine, turn: Turn, output: Output): () => void {
  // That the reason could not be found out is no reason to stop waiting.
  const timer = setTimeout(() => void say(engine, turn, output).catch(() => {}), PATIENCE_MS);
  return () => clearTimeout(timer);
}

async function say(engine: Engine, turn: Turn, output: Output): Promise<void> {
  const { lock } = await engine.summary(turn.conversation);
  if (lock !== null) {
    if (lock.pid !== process.pid)
      output.note(`Waiting: process ${lock.pid} holds the conversation, and runs what came first.`);
    return;
  }
  const known = (await engine.agents()).some((agent) => agent.name === turn.agent);
  if (!known)
    output.note(
      `Waiting: no agent is called "${oneLine(turn.agent)}" here. Ctrl-C takes the turn back; name another with --agent.`,
    );
}
