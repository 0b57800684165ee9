import type { TurnState } from 'throughline/client';

/** The fields of a turn that the steps depend on. */
export interface StepTurn {
  readonly n: number;
  readonly state: TurnState;
  readonly prompt: string;
  readonly reply: string;
}

export interface StepFacts {
  /** The codeword that the person was given. */
  readonly word: string;
  readonly turns: readonly StepTurn[];
  /** Whether the conversation has a live session. */
  readonly hasLive: boolean;
  /** The session was seen to have ended after the turn of this number; 0: not yet. */
  readonly endedAfter: number;
}

export interface Steps {
  /** The number of the turn with the codeword; 0: not sent yet, or not answered. */
  readonly told: number;
  readonly killed: boolean;
  readonly asked: boolean;
}

export const QUESTION = 'Which codewords have you seen?';

export function codewordPrompt(word: string): string {
  return `The codeword is ${word}`;
}

/** The steps that are done, whether by a button here, the composer or the command line. */
export function stepsOf({ word, turns, hasLive, endedAfter }: StepFacts): Steps {
  const done = turns.filter(({ state }) => state === 'completed');
  const told = done.find(({ prompt }) => prompt.includes(word))?.n ?? 0;
  if (told === 0) return { told, killed: false, asked: false };
  const isIdle = turns.every(({ n, state }) => n <= told || state === 'completed');
  const last = Math.max(...turns.map(({ n }) => n));
  const endedAt = endedAfter >= told ? endedAfter : !hasLive && isIdle ? last : 0;
  const killed = endedAt > 0;
  const asked =
    killed && done.some(({ n, prompt, reply }) => n > endedAt && !prompt.includes(word) && reply.includes(word));
  return { told, killed, asked };
}

export function isDemo(key: string | null): boolean {
  return key === 'demo' || key === 'demo-claude';
}

/** The second turn of the demo is answered by another process than the first. */
export const DEMO_SEAM = 2;

const COLOURS = ['amber', 'cobalt', 'copper', 'crimson', 'ivory', 'jade', 'saffron', 'silver', 'violet'];
const ANIMALS = ['badger', 'falcon', 'gecko', 'ibis', 'lynx', 'marten', 'otter', 'raven', 'walrus'];

/** Random, so that nobody can have prepared the answer. */
export function inventCodeword(random: () => number): string {
  const one = (words: readonly string[]) => words[Math.floor(random() * words.length)] ?? words[0];
  return `${one(COLOURS)}-${one(ANIMALS)}-${10 + Math.floor(random() * 90)}`;
}
