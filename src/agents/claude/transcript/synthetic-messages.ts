import { hash } from 'node:crypto';
import { isObject } from '../../../core/content.ts';
import type { ToolPart, TurnRecord } from '../../../core/record.ts';
import type { ClaudeBlock } from '../connection.ts';
import { promptBlocks } from '../prompt-blocks.ts';

/** One message of a turn, as the model is told it. */
export interface SyntheticMessage {
  readonly role: 'user' | 'assistant';
  readonly content: string | readonly SyntheticBlock[];
}

export type SyntheticBlock =
  | ClaudeBlock
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: unknown }
  | {
      readonly type: 'tool_result';
      readonly tool_use_id: string;
      readonly content: string;
      readonly is_error: boolean;
    };

/**
 * The messages of turns, so that nothing dangles: each begins with the person and ends with the assistant, and each tool call
 * has a result. Thoughts are left out: without the model's own signature they may be refused.
 */
export class TurnMessages {
  readonly #seed: string;
  readonly #toolIds = new Set<string>();

  constructor(seed: string) {
    this.#seed = seed;
  }

  *of(record: TurnRecord): Generator<SyntheticMessage> {
    yield { role: 'user', content: promptContent(record) };
    let texts: SyntheticBlock[] = [];
    for (const part of record.parts) {
      if (part.type === 'text' && part.text.trim() !== '') texts.push({ type: 'text', text: part.text });
      if (part.type !== 'tool') continue;
      const id = this.#toolId(part);
      const call = { type: 'tool_use', id, name: toolName(part), input: toolInput(part) } as const;
      yield { role: 'assistant', content: [...texts, call] };
      yield { role: 'user', content: [toolResult(id, part)] };
      texts = [];
    }
    if (record.outcome !== 'completed') texts.push({ type: 'text', text: notCompleted(record) });
    else if (texts.length === 0) texts.push({ type: 'text', text: '[This turn ended without a further answer.]' });
    yield { role: 'assistant', content: texts };
  }

  /** Its own, if a model of Claude's made it and no other turn has it; else a new one: the API refuses what it did not make. */
  #toolId({ id }: ToolPart): string {
    let made = id;
    for (let n = 0; !/^toolu_\w{1,64}$/.test(made) || this.#toolIds.has(made); n += 1) {
      const from = `${this.#seed}\n${this.#toolIds.size}\n${n}\n${id}`;
      made = `toolu_${hash('sha256', from, 'hex').slice(0, 24)}`;
    }
    this.#toolIds.add(made);
    return made;
  }
}

function promptContent({ prompt }: TurnRecord): SyntheticMessage['content'] {
  const [first] = prompt;
  if (prompt.length === 1 && first?.type === 'text') return first.text;
  const blocks = promptBlocks(prompt);
  return blocks.length > 0 ? blocks : [{ type: 'text', text: '[empty prompt]' }];
}

/** As the API wants a tool's name. Tools that Claude does not have may be in a history. */
function toolName({ name }: ToolPart): string {
  return name.replaceAll(/[^A-Za-z0-9_-]+/g, '_').slice(0, 64) || 'tool';
}

function toolInput({ input, target }: ToolPart): Record<string, unknown> {
  if (isObject(input)) return input;
  if (input !== null && input !== undefined) return { input };
  return target === null ? {} : { target };
}

function toolResult(id: string, { status, output }: ToolPart): SyntheticBlock {
  const kept = output === null || output.trim() === '' ? null : output;
  return {
    type: 'tool_result',
    tool_use_id: id,
    content: status === 'unknown' ? unknownOutcome(kept) : (kept ?? `[The tool ${status}; there is no output.]`),
    is_error: status !== 'completed',
  };
}

function unknownOutcome(output: string | null): string {
  const note = '[Nobody saw this tool end: it ran or may have run, and its outcome is unknown.]';
  return output === null ? note : `${output}\n${note}`;
}

function notCompleted({ outcome, failure }: TurnRecord): string {
  return `[This turn did not complete: ${outcome}${failure === null ? '' : `, ${failure.message}`}]`;
}
