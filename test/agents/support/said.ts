// Nothing of what people and agents said may come back as an instruction.
import { conversationOf, type ModelRequest } from '../../../src/testing/index.ts';

const RUN = 30;
/** A shorter text would be found by chance: "Go on." is in any instructions. */
const SHORTEST = 16;

/** All prompts and answers of these requests, each once. */
export function saidIn(requests: readonly ModelRequest[]): Set<string> {
  const said = new Set<string>();
  for (const request of requests) {
    if (request.side) continue;
    for (const { text } of conversationOf(request)) said.add(text);
    if (request.answer?.status === 200) said.add(request.answer.text);
  }
  return said;
}

/** Every run of thirty characters of what was said that is in the instructions, too; of a shorter text, all of it. */
export function runsIn(instructions: string, said: Iterable<string>): string[] {
  const there = new Map<number, Set<string>>();
  const found = new Set<string>();
  for (const text of said) {
    const length = Math.min(RUN, text.length);
    if (length < SHORTEST) continue;
    const known = there.get(length) ?? new Set(runs(instructions, length));
    there.set(length, known);
    for (const run of runs(text, length)) if (known.has(run)) found.add(run);
  }
  return [...found];
}

function* runs(text: string, length: number): Generator<string> {
  for (let at = 0; at + length <= text.length; at += 1) yield text.slice(at, at + length);
}
