import { type ContentBlock, type Prompt, promptText } from '../../core/content.ts';
import type { ClaudeBlock, ClaudeUserMessage } from './connection.ts';

/** A prompt as Claude takes it. `uuid` names it from here on: in the transcript and in the result. */
export function userMessage(prompt: Prompt, uuid: string, sessionId: string): ClaudeUserMessage {
  return {
    type: 'user',
    uuid,
    session_id: sessionId,
    parent_tool_use_id: null,
    message: { role: 'user', content: prompt.map(blockOf).filter(notEmpty) },
  };
}

/** The only pictures that the model takes; any other would make this and every later request of the session fail. */
const IMAGES = /^image\/(?:png|jpeg|gif|webp)$/;

/** Embedded resources are given as text: Claude has no block for them that the model sees. */
function blockOf(block: ContentBlock): ClaudeBlock {
  if (block.type === 'image' && IMAGES.test(block.mimeType)) {
    return { type: 'image', source: { type: 'base64', media_type: block.mimeType, data: block.data } };
  }
  return { type: 'text', text: promptText([block]) };
}

/** The API refuses blocks without text. */
function notEmpty(block: ClaudeBlock): boolean {
  return block.type !== 'text' || block.text.trim() !== '';
}
