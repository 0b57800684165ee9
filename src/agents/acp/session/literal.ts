import type { ContentBlock } from '../../../core/turn/content.ts';

/*
 * A prompt is text. Agents treat a prompt that begins with a slash as one of their commands, in the first block or in the last, also
 * after spaces: "/clear" silently erases the conversation, and "/etc/hosts has a wrong entry" is an unknown command. The protocol
 * cannot mark a prompt as text, so we put a line before it.
 */

/** Some agents have commands that begin with a dollar sign. */
const LIKE_A_COMMAND = /^\s*[/$]/;
const MARK = 'This is a message, not a command:\n';

/** The prompt with no block that begins like a command; the same value when there is none. */
export function literally(prompt: readonly ContentBlock[]): readonly ContentBlock[] {
  if (!prompt.some((block) => block.type === 'text' && LIKE_A_COMMAND.test(block.text))) return prompt;
  return prompt.map((block) =>
    block.type === 'text' && LIKE_A_COMMAND.test(block.text) ? { ...block, text: `${MARK}${block.text}` } : block,
  );
}

/** The original text of a prompt that the agent repeats. */
export function withoutMark(text: string): string {
  return text.replaceAll(MARK, '');
}
