import { answer } from './answers.js';
import { COMMANDS, Ending, failed } from './commands.js';
import { randomId } from './memory.js';

/** @import { Prompt } from '../../../core/turn/content.ts' */
/** @import { PermissionOption } from '../../../core/turn/permission.ts' */
/** @import { Update } from '../../../core/turn/update.ts' */
/** @import { AgentOutcome } from '../../../ports/agent.ts' */
/** @import { ToProgram } from '../protocol.ts' */
/** @import { Connection } from './connection.js' */
/** @import { Session } from './session.js' */

/** One prompt, from its arrival to its end. */
export class Turn {
  /** Set by a command for the rest of the turn. */
  skipTool = false;
  dieInTool = false;
  /** @type {{ inputTokens: number, outputTokens: number, costMicros?: number } | null} */
  usage = null;
  session;
  connection;
  #prompt;
  #said = false;
  #outputBytes = 0;
  #cancelled = Promise.withResolvers();
  #isCancelled = false;
  /** @type {Map<string, (optionId: string | null) => void>} */
  #questions = new Map();

  /**
   * @param {Session} session
   * @param {Extract<ToProgram, { type: 'prompt' }>} prompt
   * @param {Connection} connection
   */
  constructor(session, prompt, connection) {
    this.session = session;
    this.#prompt = prompt;
    this.connection = connection;
  }

  /** @returns {Promise<AgentOutcome>} */
  async run() {
    const { outcomes } = this.session;
    const known = outcomes.get(this.#prompt.id);
    if (known) return known;
    const outcome = await this.#outcome();
    outcomes.set(this.#prompt.id, outcome);
    return outcome;
  }

  /** @returns {Promise<AgentOutcome>} */
  async #outcome() {
    let taken = false;
    try {
      this.#take();
      taken = true;
      await this.#obey(personMessage(this.#prompt.content));
      this.#report();
      return { kind: 'completed' };
    } catch (error) {
      if (error instanceof Ending) return error.outcome;
      return { kind: 'failed', code: 'agent_failed', message: String(error), again: false };
    } finally {
      if (taken) this.session.lock();
    }
  }

  cancel() {
    this.#isCancelled = true;
    this.#cancelled.resolve(null);
  }

  /**
   * @param {string} id
   * @param {string | null} optionId
   */
  answer(id, optionId) {
    this.#questions.get(id)?.(optionId);
    this.#questions.delete(id);
  }

  /** Nobody can answer any more: denies every open question. */
  deny() {
    for (const id of [...this.#questions.keys()]) this.answer(id, null);
  }

  /** Adds the prompt to the session, or refuses it before anything is stored. */
  #take() {
    const { session } = this;
    const { maxPromptTokens } = session.options;
    const text = this.#prompt.content.map(blockText).join('\n\n');
    if (session.locked) throw failed('session_locked', 'the session is in use elsewhere', true);
    if (maxPromptTokens !== null && Buffer.byteLength(text) / 3 > maxPromptTokens) {
      throw failed('too_long', `prompt is too long: more than ${maxPromptTokens} tokens`, false);
    }
    const rotated = session.rotate();
    const { parent } = session.memory.add({ uuid: this.#prompt.id, role: 'user', text });
    if (rotated !== null) {
      session.unnamed = false;
      this.connection.send({ type: 'session', id: rotated });
    }
    this.connection.send({ type: 'taken', prompt: this.#prompt.id, parent });
  }

  /** @param {string} message */
  async #obey(message) {
    const words = [];
    for (const line of message.split('\n')) {
      const [, name, rest = ''] = /^\/([a-z-]+!?)(?:\s+(.*))?$/.exec(line.trim()) ?? [];
      const command = name === undefined ? undefined : COMMANDS[name];
      if (command) await command(this, rest.trim(), message);
      else words.push(line);
      if (this.#isCancelled) throw new Ending({ kind: 'cancelled' });
    }
    const text = words.join('\n').trim();
    if (text !== '') await this.say(answer(text, this.session));
    else if (!this.#said) await this.say('Done.');
  }

  #report() {
    const inputTokens = Math.ceil(this.session.memory.size / 3);
    const usage = this.usage ?? { inputTokens, outputTokens: Math.ceil(this.#outputBytes / 3) };
    this.connection.send({ type: 'usage', usage: { ...usage, modelCalls: 1 } });
  }

  /** Stores the update, then sends it. @param {Update} update */
  update(update) {
    const { session } = this;
    session.memory.add({ role: 'agent', update });
    if (session.unnamed && session.id !== null) {
      session.unnamed = false;
      this.connection.send({ type: 'session', id: session.id });
    }
    this.connection.send({ type: 'update', update });
  }

  /** @param {string} text */
  async say(text) {
    const { chunkMs } = this.session.options;
    const chunks = chunkMs > 0 ? (text.match(/\S+\s*/g) ?? []) : [text];
    for (const [index, chunk] of chunks.entries()) {
      if (index > 0) await this.wait(chunkMs);
      this.chunk(chunk);
    }
  }

  /** @param {string} text */
  chunk(text) {
    this.#said = true;
    this.#outputBytes += text.length;
    this.update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
  }

  /** A cancel ends the wait and the turn. @param {number} ms Infinity: for ever. */
  async wait(ms) {
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    const passed = new Promise((resolve) => {
      if (Number.isFinite(ms)) timer = setTimeout(resolve, ms);
    });
    await Promise.race([passed, this.#cancelled.promise]);
    clearTimeout(timer);
    if (this.#isCancelled) throw new Ending({ kind: 'cancelled' });
  }

  /**
   * Asks and waits for the answer. False: denied, or the question was cancelled.
   * @param {string} title
   * @param {unknown} toolCall
   */
  async ask(title, toolCall) {
    const id = randomId();
    /** @type {PermissionOption[]} */
    const options = [
      { optionId: 'allow', name: 'Allow', kind: 'allow_once' },
      { optionId: 'reject', name: 'Reject', kind: 'reject_once' },
    ];
    const answered = new Promise((resolve) => this.#questions.set(id, resolve));
    this.connection.send({ type: 'permission', id, title, toolCall, options });
    const optionId = await Promise.race([answered, this.#cancelled.promise]);
    if (this.#isCancelled) throw new Ending({ kind: 'cancelled' });
    return optionId === 'allow';
  }
}

/** The last text block. What comes before it is a record or a file, never a command. @param {Prompt} content */
function personMessage(content) {
  const texts = content.filter((block) => block.type === 'text');
  const last = texts.at(-1)?.text ?? '';
  return last.startsWith('<conversation-record ') ? '' : last;
}

/** @param {Prompt[number]} block */
function blockText(block) {
  if (block.type === 'text') return block.text;
  if (block.type === 'resource' && 'text' in block.resource) return block.resource.text;
  return `[${block.type}]`;
}
