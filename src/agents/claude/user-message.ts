import { type ContentBlock, type ImageBlock, type Prompt, promptText } from '../../core/turn/content.ts';
import type { ClaudeBlock, ClaudeUserMessage } from './connection.ts';

/** A prompt as Claude takes it. `uuid` becomes its id in the transcript and in the result. */
export function userMessage(prompt: Prompt, uuid: string, sessionId: string): ClaudeUserMessage {
  return {
    type: 'user',
    uuid,
    session_id: sessionId,
    parent_tool_use_id: null,
    message: { role: 'user', content: promptBlocks(prompt) },
  };
}

/** The only image types that the model takes; any other would make this and every later request of the session fail. */
const IMAGES = /^image\/(?:png|jpeg|gif|webp)$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/**
 * The blocks of a prompt as the model gets them. Embedded resources become text, because Claude passes no block for them on to the
 * model. Blocks without text are left out, because the API refuses them.
 */
export function promptBlocks(prompt: readonly ContentBlock[]): ClaudeBlock[] {
  return worded(prompt).map((block) =>
    isSupportedImage(block)
      ? { type: 'image', source: { type: 'base64', media_type: block.mimeType, data: block.data } }
      : { type: 'text', text: promptText([block]) },
  );
}

/** The same as blocks of ours; the same value when nothing is changed. */
export function worded(prompt: readonly ContentBlock[]): readonly ContentBlock[] {
  const blocks = prompt
    .map((block) =>
      block.type === 'text' || isSupportedImage(block) ? block : { type: 'text' as const, text: promptText([block]) },
    )
    .filter((block) => block.type !== 'text' || block.text.trim() !== '');
  return blocks.length === prompt.length && blocks.every((block, i) => block === prompt[i]) ? prompt : blocks;
}

function isSupportedImage(block: ContentBlock): block is ImageBlock {
  return block.type === 'image' && IMAGES.test(block.mimeType) && BASE64.test(block.data);
}
