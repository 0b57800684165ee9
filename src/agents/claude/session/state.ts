/*
 * What an open session is doing: where its prompt is (`turn`), and what Claude's process is ready for (`claude`).
 *
 *   none ──prompted──▶ preparing ──sent──▶ running ──answered──▶ recording ──finished──▶ none
 *                          ╰────────────────────finished───────────────────────────────▶ none
 *
 *   preparing   The prompt has not left. It waits until Claude is ready, because Claude would merge it into the turn before.
 *   running     The prompt has left, and Claude works on it.
 *   recording   Claude has answered, or its process has ended. The turn ends when the transcript holds all that was streamed.
 *
 *   silent ──reported──▶ ready ──answered, not idle──▶ finishing ──reported idle──▶ ready        all ──ended──▶ ended
 *
 *   silent      Claude has never reported whether it is idle. It takes a prompt; the turn ends a moment after its result.
 *   ready       Claude takes a prompt.
 *   finishing   A turn has ended with its result, and Claude has not reported yet that it is idle.
 *   ended       The process has ended or is being ended. It takes no prompt.
 *
 * Events that do not fit the state change nothing.
 */
export type SessionState<Prompt> =
  | { readonly turn: 'none'; readonly claude: ClaudeState }
  | { readonly turn: 'preparing' | 'running' | 'recording'; readonly claude: ClaudeState; readonly prompt: Prompt };

export type ClaudeState = 'silent' | 'ready' | 'finishing' | 'ended';

export type SessionEvent<Prompt> =
  | { readonly kind: 'prompted'; readonly prompt: Prompt }
  | { readonly kind: 'sent' }
  /** `idle`: Claude has reported that after its result. */
  | { readonly kind: 'answered'; readonly idle: boolean }
  | { readonly kind: 'finished' }
  /** Claude reports whether it is idle. */
  | { readonly kind: 'reported'; readonly idle: boolean }
  /** We end the process, or it has ended. */
  | { readonly kind: 'ended' };

export const NEW_SESSION: SessionState<never> = { turn: 'none', claude: 'silent' };

export function next<Prompt>(state: SessionState<Prompt>, event: SessionEvent<Prompt>): SessionState<Prompt> {
  const { turn, claude } = state;
  switch (event.kind) {
    case 'prompted':
      if (turn !== 'none' || claude === 'ended') return state;
      return { turn: 'preparing', claude, prompt: event.prompt };
    case 'sent':
      if (turn !== 'preparing' || claude === 'finishing' || claude === 'ended') return state;
      return { ...state, turn: 'running' };
    case 'answered': {
      if (turn !== 'running') return state;
      const known = claude === 'ready' || claude === 'finishing';
      return { ...state, turn: 'recording', claude: known ? (event.idle ? 'ready' : 'finishing') : claude };
    }
    case 'finished':
      return turn === 'none' || turn === 'running' ? state : { turn: 'none', claude };
    case 'reported':
      return claude === 'silent' || (claude === 'finishing' && event.idle) ? { ...state, claude: 'ready' } : state;
    case 'ended':
      return { ...state, claude: 'ended' };
  }
}

/** What is known about the turn after a message from Claude. */
export interface MessageFacts {
  /** Claude is at work: see `isWork`. */
  readonly work: boolean;
  /** How the turn has ended, as far as Claude has reported it; null: not reported yet. */
  readonly outcome: 'completed' | 'cancelled' | 'failed' | 'lost' | null;
  /** Claude has reported after the result that it is idle. */
  readonly idle: boolean;
  /** A tool was called in the turn. It may have started something that continues after the answer. */
  readonly usedTools: boolean;
}

/**
 * What to do after a message. `kill`: Claude works without a prompt, and nobody would see what it does. `end`: the turn is over.
 * `end_later`: it is over unless Claude says more within a moment, because this version does not report that it is idle.
 */
export function afterMessage(state: SessionState<unknown>, facts: MessageFacts): 'wait' | 'kill' | 'end' | 'end_later' {
  if (state.turn === 'none' || state.turn === 'preparing') return facts.work ? 'kill' : 'wait';
  if (state.turn === 'recording' || facts.outcome === null) return 'wait';
  if (facts.idle) return 'end';
  if (state.claude === 'silent') return 'end_later';
  // The result completes the answer. Only the next prompt has to wait until Claude is idle.
  return facts.outcome === 'completed' && !facts.usedTools ? 'end' : 'wait';
}
