import type { SubmitOptions } from '../../../src/ports/engine.ts';
import type { AgentName } from '../harness/agents.ts';
import type { Random } from '../harness/random.ts';

/** A turn to submit. Its name is its request id, its codeword, and the name of its one tool. */
export interface Request {
  readonly name: string;
  readonly key: string;
  readonly prompt: string;
  readonly options: SubmitOptions & { readonly requestId: string };
}

export const QUESTION = 'Which codewords have you seen?';

/** A turn that tells a codeword, runs one tool with a counted effect, and asks for all codewords. */
export function randomRequest(
  random: Random,
  at: { key: string; agent: AgentName; name: string; file: string },
): Request {
  const { key, agent, name, file } = at;
  const tool = random.chance(0.5) ? `/tool ${name} ${file}` : `/slow-tool ${name} ${file} ${random.whole(5, 60)}`;
  const around = () => (random.chance(0.6) ? [`/stream ${random.whole(2, 6)} ${random.whole(2, 15)}`] : []);
  // Permissions are denied here, so the tool after the question must not run.
  const asks = random.chance(0.2) ? ['/ask May I?', `/tool denied-${name} ${file}`] : [];
  const prompt = [`The codeword is ${name}.`, ...around(), ...asks, tool, ...around(), QUESTION].join('\n');
  return { name, key, prompt, options: { requestId: name, agent, permissions: 'deny' } };
}

/** The codewords that an answer names. */
export function codewordsIn(reply: string): string[] {
  const [, words] = /I have seen these codewords: ([^.]*)\./.exec(reply) ?? [];
  return words === undefined ? [] : words.split(', ');
}
