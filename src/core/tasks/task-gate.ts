import { isObject } from '../turn/content.ts';

/** `broken`: the gate itself did not work, which says nothing about the task. */
export const VERDICTS = ['pass', 'fail', 'ask', 'broken'] as const;

/** What a gate said about a turn. */
export interface GateResult {
  readonly verdict: (typeof VERDICTS)[number];
  /** In a few words: "exit code 1"; of an agent, its reason. */
  readonly summary: string;
  /** The end of what the command wrote; of an agent, nothing. */
  readonly output: string;
  /** Characters of the output that were left out before it. */
  readonly cut: number;
  readonly ms: number;
}

const LONGEST_LINE = 200;

/** The last line with words that the gate wrote, often all that one has to know; empty: it wrote none. */
export function lastLineOf({ output }: Pick<GateResult, 'output'>): string {
  const line = output.trimEnd().split('\n').at(-1) ?? '';
  return line.trim().slice(0, LONGEST_LINE).toWellFormed();
}

/** An agent's verdict. `ask`: it cannot tell, and a person should. */
export interface Verdict {
  readonly verdict: 'pass' | 'fail' | 'ask';
  readonly reason: string;
}

const LONGEST_REASON = 4_000;
const FENCED = /^```(?:json)?\s*\n([\s\S]*?)\n?```$/;

/** The verdict that an answer is, and nothing else; or what is wrong with it. */
export function parseVerdict(answer: string): Verdict | { readonly malformed: string } {
  const text = answer.trim();
  const value = parsed(FENCED.exec(text)?.[1] ?? text);
  if (!isObject(value)) return { malformed: 'it is not a JSON object' };
  const strange = Object.keys(value).find((name) => name !== 'verdict' && name !== 'reason');
  if (strange !== undefined)
    return { malformed: `it has the field ${JSON.stringify(strange)}, which is not asked for` };
  const { verdict, reason } = value;
  if (verdict !== 'pass' && verdict !== 'fail' && verdict !== 'ask') {
    return { malformed: '"verdict" must be "pass", "fail" or "ask"' };
  }
  if (typeof reason !== 'string' || reason.trim() === '') return { malformed: '"reason" is not a text' };
  return { verdict, reason: reason.trim().slice(0, LONGEST_REASON).toWellFormed() };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
