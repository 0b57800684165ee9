import type { ContentBlock } from '../../../core/turn/content.ts';

/*
 * A prompt is text. Agents take one that begins with a slash for a command of theirs, in the first block or in the last, after
 * spaces too: "/clear" forgets the conversation without a word, and "/etc/hosts has a wrong entry" is an unknown command. The
 * protocol has no way to say that a prompt is no command, so a line before it does.
 */

/** Some agents have commands that begin with a dollar sign. */
const LIKE_A_COMMAND = /^\s*[/$]/;
const MARK = 'This is a message, not a command:\n';

/** The prompt in a form in which no block of it begins as a command does; the same value when none does. */
export function literally(prompt: readonly ContentBlock[]): readonly ContentBlock[] {
  if (!prompt.some((block) => block.type === 'text' && LIKE_A_COMMAND.test(block.text))) return prompt;
  return prompt.map((block) =>
    block.type === 'text' && LIKE_A_COMMAND.test(block.text) ? { ...block, text: `${MARK}${block.text}` } : block,
  );
}

/** What was said, from a text that the agent repeats. */
export function withoutMark(text: string): string {
  return text.replaceAll(MARK, '');
}
