import type { Prompt } from '../../core/content.ts';
import type { ClaudeUserMessage } from './connection.ts';
import { promptBlocks } from './prompt-blocks.ts';

/** A prompt as Claude takes it. `uuid` names it from here on: in the transcript and in the result. */
export function userMessage(prompt: Prompt, uuid: string, sessionId: string): ClaudeUserMessage {
  return {
    type: 'user',
    uuid,
    session_id: sessionId,
    parent_tool_use_id: null,
    message: { role: 'user', content: promptBlocks(prompt) },
  };
}
