import type { Failure, Turn } from 'throughline/client';
import { hasEnded } from '../../../src/core/turn/turn.ts';

/** What a person is told about a turn that was not answered. */
export interface FailureWords {
  /** What happened, in a sentence. */
  readonly title: string;
  /** What is known besides, each a sentence. */
  readonly facts: readonly string[];
  /** Broken: it failed. Look: its outcome is not known. */
  readonly tone: 'broken' | 'look';
}

type Code = Failure['code'];

/** `agent`: as people call it. Null: the turn was answered, was stopped, or has not ended. */
export function failureWords(turn: Turn, agent: string): FailureWords | null {
  const { state, failure } = turn;
  if (!hasEnded(state) || state === 'completed' || state === 'cancelled') return null;
  const code = failure?.code ?? (state === 'interrupted' ? 'interrupted' : 'internal');
  const title = TITLES[code]?.(agent) ?? (state === 'interrupted' ? UNKNOWN_END : 'Not answered.');
  const isSent = turn.sent !== null;
  const facts = [
    isSent ? 'Your prompt is kept.' : 'Your prompt is kept; it was not sent.',
    // Of other failures, the message says more than the title.
    SAYS_ALL.has(code) ? '' : sentence(failure?.message ?? ''),
    state === 'interrupted' && isSent
      ? `What ${agent} said and did until then is kept above. It may have done more.`
      : '',
    turn.attempt > 1 ? `Tried ${turn.attempt === 2 ? 'twice' : `${turn.attempt} times`}.` : '',
  ];
  return { title, facts: facts.filter((fact) => fact !== ''), tone: state === 'interrupted' ? 'look' : 'broken' };
}

const UNKNOWN_END = 'Interrupted: how it ended is not known.';

const TITLES: Partial<Readonly<Record<Code, (agent: string) => string>>> = {
  signed_out: (agent) => `Not answered: ${agent}’s sign-in has expired or is missing.`,
  agent_unavailable: (agent) => `Not sent: ${agent} cannot be started.`,
  agent_failed: (agent) => `Not answered: ${agent} reported an error.`,
  agent_died: (agent) => `Not answered: ${agent} ended in the middle of the turn.`,
  too_long: (agent) => `Not answered: ${agent} refused the prompt as too long.`,
  too_large: () => 'Not answered: the prompt is too large.',
  restore_failed: () => 'Not sent: no session could be given the history.',
  context_refuted: (agent) => `Not counted: ${agent} did not have the history.`,
  session_locked: (agent) => `Not sent: another program uses ${agent}’s session.`,
  permission_denied: (agent) => `Not finished: a permission was denied, and ${agent} gave up.`,
  timed_out: () => 'Interrupted: the turn took longer than its limit.',
  stalled: (agent) => `Interrupted: ${agent} sent nothing for longer than the limit.`,
  over_budget: () => 'Not finished: a limit of spending is reached.',
  interrupted: () => UNKNOWN_END,
};

const SAYS_ALL: ReadonlySet<Code> = new Set(['signed_out', 'too_long', 'restore_failed', 'interrupted']);

const LONGEST = 300;

/** The first lines of a message of an agent or the system; all of it is in the details. */
function sentence(message: string): string {
  const words = message.trim();
  const short = words.length > LONGEST ? `${words.slice(0, LONGEST)}…` : words;
  return short === '' || /[.!?…]$/.test(short) ? short : `${short}.`;
}
