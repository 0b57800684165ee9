import { processLabel } from '../../core/public/conversation.ts';
import type { PublicTurn } from '../../core/public/turn.ts';
import type { Engine } from '../../ports/engine.ts';
import type { Output } from './output.ts';
import { oneLine } from './terminal-text.ts';

/** So long a turn may wait in silence. */
const PATIENCE_MS = 2_000;

/** Says why a turn does not start, when it does not. The function returned is called when it does. */
export function noteWhenWaiting(engine: Engine, turn: PublicTurn, output: Output): () => void {
  // That the reason could not be found out is no reason to stop waiting.
  const timer = setTimeout(() => void say(engine, turn, output).catch(() => {}), PATIENCE_MS);
  return () => clearTimeout(timer);
}

async function say(engine: Engine, turn: PublicTurn, output: Output): Promise<void> {
  const { lock } = await engine.summary(turn.conversationId);
  if (lock !== null) {
    if (lock.holder !== processLabel(process.pid))
      output.note(`Waiting: ${lock.holder} holds the conversation, and runs what came first.`);
    return;
  }
  const known = (await engine.agents()).some((agent) => agent.name === turn.agent);
  if (!known)
    output.note(
      `Waiting: no agent is called "${oneLine(turn.agent)}" here. Ctrl-C takes the turn back; name another with --agent.`,
    );
}
