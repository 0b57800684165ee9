// Finds text of a conversation in the instructions to the model. It must not be there, because the model obeys its instructions.
import { conversationOf, type ModelRequest } from '../../../src/testing/index.ts';

const PASSAGE_LENGTH = 30;
/** Shorter texts are not searched for: a text such as "Go on." can be in instructions by chance. */
const SHORTEST = 16;

/** All prompts and answers of these requests, without duplicates. */
export function promptsAndAnswers(requests: readonly ModelRequest[]): Set<string> {
  const texts = new Set<string>();
  for (const request of requests) {
    if (request.side) continue;
    for (const { text } of conversationOf(request)) texts.add(text);
    if (request.answer?.status === 200) texts.add(request.answer.text);
  }
  return texts;
}

/** The passages of thirty characters that are in a text and also in the instructions. A shorter text is one passage. */
export function passagesRepeatedIn(instructions: string, texts: Iterable<string>): string[] {
  const passagesByLength = new Map<number, Set<string>>();
  const found = new Set<string>();
  for (const text of texts) {
    const length = Math.min(PASSAGE_LENGTH, text.length);
    if (length < SHORTEST) continue;
    const known = passagesByLength.get(length) ?? new Set(passages(instructions, length));
    passagesByLength.set(length, known);
    for (const passage of passages(text, length)) if (known.has(passage)) found.add(passage);
  }
  return [...found];
}

function* passages(text: string, length: number): Generator<string> {
  for (let at = 0; at + length <= text.length; at += 1) yield text.slice(at, at + length);
}
