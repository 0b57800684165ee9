import { hash } from 'node:crypto';
import { jsonLine } from '../../../core/input/visible.ts';
import { isObject } from '../../../core/turn/content.ts';
import type { ToolPart, TurnRecord } from '../../../core/turn/record.ts';
import type { ClaudeBlock } from '../connection.ts';
import { promptBlocks } from '../user-message.ts';
import { SYNTHETIC_MODEL } from './updates.ts';

/*
 * Makes a transcript from records. Claude resumes it as turns of its own. Only the fields that Claude needs are written, and always all of
 * them: without one of them, context is lost without an error (no uuid or parent: everything but the last message).
 */

export interface SyntheticSession {
  /** The id of the new session; also the name of its file. The uuids and message ids are made from it. */
  readonly id: string;
  /** The working directory that it will be resumed in, its links resolved. */
  readonly cwd: string;
  /** The version of Claude that will read it. */
  readonly version: string;
  /** Milliseconds since 1970. Every entry is older, so that what Claude appends comes after them. */
  readonly before: number;
}

/** These answers cost nothing in this session, and a number here would count against the window. */
const NO_TOKENS = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
} as const;

/** The lines of the file, oldest turn first, each with its newline. The same arguments give the same bytes. */
export function* synthesise(records: readonly TurnRecord[], session: SyntheticSession): Generator<string> {
  const { id, cwd, version, before } = session;
  const turns = new TurnMessages(id);
  const ids = syntheticIds(id);
  let left = records.reduce((sum, record) => sum + mostMessages(record), 0);
  let parentUuid: string | null = null;
  let time = Number.NEGATIVE_INFINITY;
  for (const record of records) {
    for (const message of turns.of(record)) {
      // Early enough to leave a millisecond for each message that is still to come.
      time = Math.max(time + 1, Math.min(wholeTime(record.startedAt), before - left));
      left -= 1;
      const uuid = ids.uuid();
      const entry = {
        parentUuid,
        isSidechain: false,
        type: message.role,
        message: message.role === 'user' ? message : answer(message, ids.message()),
        uuid,
        timestamp: new Date(time).toISOString(),
        userType: 'external',
        cwd,
        sessionId: id,
        version,
        gitBranch: '',
      };
      yield `${jsonLine(entry)}\n`;
      parentUuid = uuid;
    }
  }
}

/**
 * Claude continues with the model of the last answer, unless `--model` names another one. With Claude's own name for text without a model,
 * it uses the model of its settings.
 */
function answer({ role, content }: SyntheticMessage, id: string) {
  const calls = typeof content !== 'string' && content.some(({ type }) => type === 'tool_use');
  return {
    id,
    type: 'message',
    role,
    model: SYNTHETIC_MODEL,
    content,
    stop_reason: calls ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage: NO_TOKENS,
  };
}

/** A prompt and an end, and for each part at most a message and the result of a tool. */
function mostMessages({ parts }: TurnRecord): number {
  return 2 + 2 * parts.length;
}

/** A record from elsewhere may have any time; an invalid one counts as the oldest. */
function wholeTime(at: number): number {
  return Number.isFinite(at) && at >= 0 ? Math.floor(at) : 0;
}

/** Ids that look like real ones. The same seed gives the same ids. */
function syntheticIds(seed: string) {
  let n = 0;
  const next = () => {
    n += 1;
    return hash('sha256', `${seed}\n${n}`, 'hex');
  };
  return {
    uuid() {
      const hex = next();
      const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16);
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
    },
    message: () => `msg_${next().slice(0, 24)}`,
  };
}

/** One message of a turn, as the model gets it. */
interface SyntheticMessage {
  readonly role: 'user' | 'assistant';
  readonly content: string | readonly SyntheticBlock[];
}

type SyntheticBlock =
  | ClaudeBlock
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: unknown }
  | {
      readonly type: 'tool_result';
      readonly tool_use_id: string;
      readonly content: string;
      readonly is_error: boolean;
    };

/**
 * The messages of turns. Each turn begins with the user and ends with the assistant, and each tool call has a result. Thoughts are
 * left out, because the API may refuse them without the model's own signature.
 */
class TurnMessages {
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

  /** The id of the record, if Claude's API made it and no other turn has it. Otherwise a new one: the API refuses foreign ids. */
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

/** A name that the API takes. A history may contain tools that Claude does not have. */
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
  const none = output === null ? 'its output was not reported' : 'there is no output';
  return {
    type: 'tool_result',
    tool_use_id: id,
    content: status === 'unknown' ? unknownOutcome(kept) : (kept ?? `[The tool ${status}; ${none}.]`),
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
