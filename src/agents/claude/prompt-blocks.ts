import { type ContentBlock, promptText } from '../../core/content.ts';
import type { ClaudeBlock } from './connection.ts';

/** The only pictures that the model takes; any other would make this and every later request of the session fail. */
const IMAGES = /^image\/(?:png|jpeg|gif|webp)$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/**
 * The blocks of a prompt as the model is told them. Embedded resources are given as text: Claude has no block for them that the
 * model sees. Blocks without text are left out: the API refuses them.
 */
export function promptBlocks(prompt: readonly ContentBlock[]): ClaudeBlock[] {
  return prompt.map(blockOf).filter((block) => block.type !== 'text' || block.text.trim() !== '');
}

function blockOf(block: ContentBlock): ClaudeBlock {
  if (block.type === 'image' && IMAGES.test(block.mimeType) && BASE64.test(block.data)) {
    return { type: 'image', source: { type: 'base64', media_type: block.mimeType, data: block.data } };
  }
  return { type: 'text', text: promptText([block]) };
}
