import { ThroughlineError, upperFirst } from '../errors.ts';
import { EXPORT_FORMAT, EXPORT_VERSION, type ExportedConversation, exportSteps } from '../portable.ts';
import { type ContentBlock, isObject, promptText, titleOf } from '../turn/content.ts';
import { PartsBuilder, type TurnRecord } from '../turn/record.ts';
import { NO_USAGE } from '../turn/usage.ts';
import { shown } from './arguments.ts';
import { type Content, contentOf, fault } from './message-content.ts';

/*
 * Makes a conversation to import of a list of messages, as kept by programs that call a model themselves. Supported are the messages of
 * the AI SDK (`ModelMessage`), of OpenAI's chat completions, and of Anthropic's messages, with their content parts and tools.
 *
 *   turn     consecutive messages of users, and everything up to the next message of a user
 *   prompt   all blocks of those user messages
 *   answer   the texts of the assistant's messages, each a paragraph; thoughts and tools between them
 *
 * The last turn counts as interrupted when it ends with a user, or with a tool: it can be retried.
 */

/**
 * A message of a model's API or of a chat library, as it is: `{ role, content }`.
 *
 * @example
 * import type { Message } from 'throughline';
 *
 * const messages: Message[] = [
 *   { role: 'user', content: 'The codeword is amber.' },
 *   { role: 'assistant', content: 'Noted.' },
 * ];
 * const imported = await tl.import(messages, { key: 'ticket-4711' });
 */
export interface Message {
  /** Messages with the roles `system` and `developer` are refused, with a hint. */
  readonly role: 'user' | 'assistant' | 'tool' | 'function' | 'system' | 'developer';
  /** A text, or a list of parts. */
  readonly content?: unknown;
}

/** What an import needs besides the value. */
export interface ImportFrame {
  /** The agent that the caller names for messages. */
  readonly agent?: string | undefined;
  /** The agent where none is named. May throw. */
  readonly defaultAgent: () => string;
  readonly now: number;
}

/** Makes a conversation to import of an export or a list of messages. In steps, because either can be very long. */
export function* importSteps(
  input: unknown,
  { agent, defaultAgent, now }: ImportFrame,
): Generator<undefined, ExportedConversation> {
  if (Array.isArray(input)) {
    const read = yield* messageSteps(input, () => agent ?? defaultAgent(), now);
    return yield* exportSteps(read);
  }
  const exported = yield* exportSteps(input);
  if (agent === undefined) return exported;
  throw new ThroughlineError('refused', 'An exported conversation names its own agents, so "agent" cannot be used.', {
    hint: 'Leave it out, and name another agent with the next prompt.',
  });
}

/**
 * One step for each message. Throws `invalid` with the place of the fault. `agentOf`: the agent that continues the conversation; its
 * sessions are told that the answers are its own. Called after the messages were checked.
 */
function* messageSteps(
  messages: readonly unknown[],
  agentOf: () => string,
  now: number,
): Generator<undefined, ExportedConversation> {
  if (messages.length === 0) throw fault('the list is empty');
  const turns = new Turns(now);
  for (const [index, message] of messages.entries()) {
    turns.add(message, `message ${index + 1}`);
    yield;
  }
  const records = turns.end();
  const agent = agentOf();
  const title = titleOf(records[0]?.prompt ?? []);
  return {
    format: EXPORT_FORMAT,
    version: EXPORT_VERSION,
    conversation: { key: null, title, agent, restore: {} },
    records: records.map((record) => ({ ...record, agent })),
    sessions: [],
  };
}

/** The prompt of the first turn when a list begins with the assistant. */
const NO_PROMPT: ContentBlock = { type: 'text', text: '[no prompt: the assistant spoke first]' };

const NO_ANSWER = {
  code: 'interrupted',
  message: 'The messages that were imported end before the answer.',
  hint: 'Retry the turn to get an answer.',
} as const;

class Turns {
  readonly #now: number;
  readonly #records: Omit<TurnRecord, 'agent'>[] = [];
  #prompt: ContentBlock[] = [];
  #parts = new PartsBuilder();
  /** The assistant has said or done something in this turn. */
  #isAnswered = false;
  /** The last part is a text: that of another message is a new paragraph. */
  #endsWithText = false;
  /** Tools of this turn without a result. */
  readonly #running = new Set<string>();
  #lastRole: unknown = null;

  constructor(now: number) {
    this.#now = now;
  }

  add(message: unknown, at: string): void {
    if (!isObject(message)) throw fault(`${at} is not an object`);
    this.#lastRole = message.role;
    switch (message.role) {
      case 'user':
        this.#user(contentOf(message, at), at);
        break;
      case 'assistant':
        this.#assistant(contentOf(message, at));
        break;
      case 'tool':
      case 'function':
        this.#results(contentOf(message, at));
        break;
      case 'system':
      case 'developer':
        throw instructions(at, message.role);
      default:
        throw fault(`${at} has the role ${shown(message.role)}; known are user, assistant and tool`);
    }
  }

  end(): Omit<TurnRecord, 'agent'>[] {
    const isOpen = this.#lastRole !== 'assistant' || this.#running.size > 0;
    this.#close(isOpen);
    return this.#records;
  }

  #user(contents: readonly Content[], at: string): void {
    if (contents.length === 0) throw fault(`${at} is empty`);
    // Anthropic's users report the results of tools.
    this.#results(contents.filter(({ type }) => type === 'result'));
    const blocks = contents.flatMap((content) => (content.type === 'block' ? content.block : []));
    if (blocks.length > 0 && this.#isAnswered) this.#close(false);
    this.#prompt.push(...blocks);
  }

  #assistant(contents: readonly Content[]): void {
    this.#isAnswered = true;
    let isFirst = true;
    for (const content of contents) {
      switch (content.type) {
        case 'block':
          this.#say(promptText([content.block]), isFirst);
          isFirst = false;
          break;
        case 'thought':
          this.#parts.add({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: content.text } });
          this.#endsWithText = false;
          break;
        case 'call':
          this.#running.add(content.id);
          this.#tool(content.id, { title: content.name, rawInput: content.input });
          break;
        case 'result':
          this.#results([content]);
      }
    }
  }

  #say(text: string, isFirst: boolean): void {
    const apart = isFirst && this.#endsWithText ? '\n\n' : '';
    this.#parts.add({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: apart + text } });
    if (text !== '') this.#endsWithText = true;
  }

  #results(contents: readonly Content[]): void {
    for (const content of contents) {
      if (content.type !== 'result') continue;
      this.#isAnswered = true;
      this.#running.delete(content.id);
      const title = content.name === undefined ? {} : { title: content.name };
      const status = content.failed ? 'failed' : 'completed';
      this.#tool(content.id, { ...title, status, rawOutput: content.output });
    }
  }

  #tool(toolCallId: string, fields: object): void {
    this.#parts.add({ sessionUpdate: 'tool_call_update', toolCallId, ...fields });
    this.#endsWithText = false;
  }

  #close(isOpen: boolean): void {
    const now = this.#now;
    this.#records.push({
      version: 1,
      n: this.#records.length + 1,
      sessionId: null,
      outcome: isOpen ? 'interrupted' : 'completed',
      prompt: this.#prompt.length === 0 ? [NO_PROMPT] : this.#prompt,
      parts: this.#parts.parts(),
      failure: isOpen ? NO_ANSWER : null,
      usage: NO_USAGE,
      startedAt: now,
      endedAt: now,
    });
    this.#prompt = [];
    this.#parts = new PartsBuilder();
    this.#isAnswered = false;
    this.#endsWithText = false;
    this.#running.clear();
  }
}

/** Users can read a conversation, and a program's instructions are often not meant for them. So they are refused. */
function instructions(at: string, role: string): ThroughlineError {
  const message = `${upperFirst(at)} has the role "${role}", and instructions are not part of a history.`;
  const hint =
    `Leave such messages out, for example with messages.filter(({ role }) => role !== "${role}"), and give the agent its ` +
    'instructions in its own settings.';
  return new ThroughlineError('invalid', message, { hint });
}
