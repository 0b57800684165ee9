import { isObject } from '../turn/content.ts';

/** `broken`: the gate itself did not work, which says nothing about the task. */
export const VERDICTS = ['pass', 'fail', 'ask', 'broken'] as const;

/** The result of a gate for one turn. */
export interface GateResult {
  readonly verdict: (typeof VERDICTS)[number];
  /** In a few words: "exit code 1"; of an agent, its reason. */
  readonly summary: string;
  /** The end of the command's output; empty for an agent. */
  readonly output: string;
  /** Characters of the output that were left out before it. */
  readonly cut: number;
  readonly ms: number;
}

const LONGEST_LINE = 200;

/** The last line of the gate's output that is not empty: often it says all; empty: no output. */
export function lastLineOf({ output }: Pick<GateResult, 'output'>): string {
  const line = output.trimEnd().split('\n').at(-1) ?? '';
  return line.trim().slice(0, LONGEST_LINE).toWellFormed();
}

/** An agent's verdict. `ask`: a person should decide. */
export interface Verdict {
  readonly verdict: 'pass' | 'fail' | 'ask';
  readonly reason: string;
}

const LONGEST_REASON = 4_000;
const FENCED = /^```(?:json)?\s*\n([\s\S]*?)\n?```$/;

/** Reads an answer that must be a verdict and nothing else. `malformed`: what is wrong with it. */
export function parseVerdict(answer: string): Verdict | { readonly malformed: string } {
  const text = answer.trim();
  const value = parsed(FENCED.exec(text)?.[1] ?? text);
  if (!isObject(value)) return { malformed: 'it is not a JSON object' };
  const unknown = Object.keys(value).find((name) => name !== 'verdict' && name !== 'reason');
  if (unknown !== undefined) return { malformed: `it has the unknown field ${JSON.stringify(unknown)}` };
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
