import { isObject } from '../../../core/turn/content.ts';
import { RETRACTED, refusesLogin, retryUpdate, SPENT, type Update } from '../../../core/turn/update.ts';
import { addUsage, NO_USAGE, type Usage } from '../../../core/turn/usage.ts';
import type { AgentEvent, AgentOutcome } from '../../../ports/agent.ts';
import { asObject } from '../../shared/json.ts';
import { loginRefused, sdkRetry } from '../../shared/model-retry.ts';
import type { ClaudeMessage } from '../connection.ts';
import type { EntryMessage } from '../transcript/entries.ts';
import { assistantUpdates, compactionUpdate, resultUpdates, SYNTHETIC_MODEL, tokensOf } from '../transcript/updates.ts';
import { costOf, LOG_IN, outcomeOf, promptsOf, type Stopped, stoppedByHook, tokensAdded } from './result.ts';
import { canRewind } from './rewind.ts';

/*
 * Turns the messages of one turn into events. Only the main chain is shown, not what subagents say.
 *
 * The turn is over when a result for our prompt has come and Claude is idle after it: a background agent that ends later gives a second
 * result. `afterMessage` in state.ts decides when to wait for that.
 */
export class TurnReader {
  /** Entries that Claude has reported. They must be in its transcript before the turn counts. */
  readonly entries = new Set<string>();
  /** Claude has reported that it could not write its transcript. */
  writesLost = false;
  usedTools = false;
  /** Set when the API refuses the login, though Claude would ask it again. */
  refused: ReturnType<typeof loginRefused> | null = null;
  /** What the session has cost so far, in dollars; null: not known. */
  costUsd: number | null;
  readonly #prompt: string;
  readonly #rewinds: boolean;
  /** The result for our prompt; null: it has not come. */
  #ownResult: ClaudeMessage | null = null;
  /** Set when a hook of the settings stopped the prompt; null: none did. */
  #stopped: Stopped | null = null;
  #namesPrompts = false;
  #running = false;
  /** Claude has reported after the result that it is idle. */
  over = false;
  #messageId = '';
  #mainCall = '';
  readonly #streamed = new Map<string, number[]>();
  readonly #calls = new Set<string>();
  readonly #spent = new Spent();

  constructor(prompt: string, costUsd: number | null, version: string) {
    this.#prompt = prompt;
    this.costUsd = costUsd;
    this.#rewinds = canRewind(version);
  }

  /** How many tokens the last call of the main model has taken up in the context; null: not reported. Subagents have contexts of their own. */
  get contextUsed(): number | null {
    return this.#spent.of(this.#mainCall);
  }

  /** How the turn ended; null: the result has not come. It is final when the turn is `over`. */
  get outcome(): AgentOutcome | null {
    if (this.#ownResult !== null && this.#stopped !== null) return stoppedByHook(this.#stopped);
    if (this.#ownResult !== null) return outcomeOf(this.#ownResult, this.#rewinds);
    if (!this.over) return null;
    return { kind: 'failed', code: 'agent_failed', message: 'Claude ended the turn without a result', again: false };
  }

  read(message: ClaudeMessage): AgentEvent[] {
    if (message.type === 'result') return [this.#result(message)];
    return this.#updates(message).map((update) => ({ type: 'update', update }));
  }

  #updates(message: ClaudeMessage): Update[] {
    if (message.type === 'system') return this.#system(message);
    const { id, model, usage } = asObject(message.message);
    if (message.type === 'assistant' && typeof id === 'string' && model !== SYNTHETIC_MODEL) {
      this.#calls.add(id);
      this.#spent.note(id, usage);
    }
    if (typeof message.parent_tool_use_id === 'string') return message.type === 'user' ? this.#spent.updates() : [];
    if (promptsOf(message)?.includes(this.#prompt)) this.#namesPrompts = true;
    if (message.type === 'stream_event') return this.#stream(message);
    if (message.type === 'assistant') return this.#assistant(message);
    return message.type === 'user' ? this.#user(message) : [];
  }

  #stream(message: ClaudeMessage): Update[] {
    const event = asObject(message.event);
    if (event.type === 'message_start') {
      const { id, usage } = asObject(event.message);
      this.#messageId = String(id ?? '');
      this.#mainCall = this.#messageId;
      this.#streamed.set(this.#messageId, []);
      this.#spent.note(this.#messageId, usage);
    }
    if (event.type === 'message_delta') this.#spent.note(this.#messageId, event.usage);
    if (isObject(message.abandoned_blocks)) return this.#retracted(message.abandoned_blocks);
    if (event.type !== 'content_block_delta' || !isObject(event.delta)) return [];
    const index = typeof event.index === 'number' ? event.index : 0;
    const { type, text, thinking } = event.delta;
    if (type === 'text_delta') return this.#chunk('agent_message_chunk', text, index);
    return type === 'thinking_delta' ? this.#chunk('agent_thought_chunk', thinking, index) : [];
  }

  #chunk(kind: 'agent_message_chunk' | 'agent_thought_chunk', text: unknown, index: number): Update[] {
    if (typeof text !== 'string' || text === '') return [];
    const blocks = this.#streamed.get(this.#messageId);
    if (blocks && !blocks.includes(index)) blocks.push(index);
    return [{ sessionUpdate: kind, content: { type: 'text', text }, messageId: blockId(this.#messageId, index) }];
  }

  /** The connection to the model broke during an answer, and Claude asks again: these blocks are not part of it. */
  #retracted({ api_message_id: id, from_block_index: from }: Record<string, unknown>): Update[] {
    if (typeof id !== 'string' || typeof from !== 'number') return [];
    const gone = (this.#streamed.get(id) ?? []).filter((index) => index >= from);
    return gone.map((index) => ({ sessionUpdate: RETRACTED, messageId: blockId(id, index) }));
  }

  /** Text that was streamed is not reported again. */
  #assistant(message: ClaudeMessage): Update[] {
    const { id, model } = asObject(message.message);
    if (model === SYNTHETIC_MODEL) return [];
    if (typeof id === 'string') this.#mainCall = id;
    this.#note(message);
    const updates = assistantUpdates(message.message as EntryMessage);
    if (updates.some(({ sessionUpdate }) => sessionUpdate === 'tool_call')) this.usedTools = true;
    const streamed = this.#streamed.has(String(id ?? ''));
    return streamed ? updates.filter(({ sessionUpdate }) => sessionUpdate === 'tool_call') : updates;
  }

  #user(message: ClaudeMessage): Update[] {
    const updates = resultUpdates(message.message as EntryMessage, message.tool_use_result);
    if (updates.length > 0) this.#note(message);
    // Now all model calls before the next one are complete, with their usage.
    return [...updates, ...this.#spent.updates()];
  }

  #note({ uuid }: ClaudeMessage): void {
    if (typeof uuid === 'string') this.entries.add(uuid);
  }

  #system(message: ClaudeMessage): Update[] {
    switch (message.subtype) {
      case 'session_state_changed':
        this.#state(message.state);
        return [];
      case 'informational': {
        // The result that follows reports success, but the model was not asked.
        const { prompt_submit_outcome: stopped } = message;
        if (isObject(stopped)) {
          const reason = String(stopped.reason ?? message.content ?? 'it gave no reason');
          this.#stopped = { reason, kept: stopped.prompt_kept !== false };
        }
        return [];
      }
      case 'session_writes_lost':
        this.writesLost = true;
        return [];
      case 'api_retry': {
        const retry = sdkRetry(message);
        if (refusesLogin(retry)) this.refused = loginRefused(retry, LOG_IN);
        return [retryUpdate(retry)];
      }
      case 'compact_boundary':
        this.#calls.add(`compaction ${message.uuid}`);
        return [compactionUpdate(message.compact_metadata)];
      case 'status':
        return message.status === 'compacting' ? [{ sessionUpdate: 'compaction_update', status: 'in_progress' }] : [];
      default:
        return [];
    }
  }

  #state(state: unknown): void {
    if (state === 'running') this.#running = true;
    if (state === 'idle' && (this.#running || this.#ownResult !== null)) this.over = true;
  }

  #result(message: ClaudeMessage): AgentEvent {
    const prompts = promptsOf(message);
    const unasked = prompts === null && isUnasked(message);
    const ours = prompts === null ? !this.#namesPrompts && !unasked : prompts.includes(this.#prompt);
    if (ours) this.#ownResult ??= message;
    // Claude is idle once before it works on our prompt.
    if (unasked) this.#running = false;
    const { costMicros, soFar } = costOf(message, this.costUsd);
    this.costUsd = soFar;
    const modelCalls = this.#calls.size;
    this.#calls.clear();
    return { type: 'usage', usage: { ...tokensAdded(message), costMicros, modelCalls } };
  }
}

/**
 * Whether a message shows that Claude is at work. The state `running` is not enough: at that moment its cause is not in the transcript
 * yet, so after a resume Claude would start with it again.
 */
export function isWork({ type }: ClaudeMessage): boolean {
  return type === 'assistant' || type === 'user' || type === 'stream_event' || type === 'result';
}

/** The answer to a notice of Claude's own, such as the end of a background task. It may come before Claude works on our prompt. */
function isUnasked({ origin }: ClaudeMessage): boolean {
  return isObject(origin) && origin.kind === 'task-notification';
}

function blockId(messageId: string, index: number): string {
  return `${messageId}/${index}`;
}

/**
 * The tokens that a running turn has used so far. Claude reports each model call in parts: the input at its beginning, the output at
 * its end. The result of the turn has the final numbers.
 */
class Spent {
  readonly #calls = new Map<string, Partial<Usage>>();
  #isNew = false;

  /** Adds what was reported of a call. The largest of each number counts. */
  note(call: string, usage: unknown): void {
    const before = this.#calls.get(call) ?? {};
    const said = Object.entries(tokensOf({ type: 'usage', usage })) as [keyof Usage, number][];
    const more = said.filter(([kind, count]) => count > (before[kind] ?? 0));
    if (more.length === 0) return;
    this.#calls.set(call, { ...before, ...Object.fromEntries(more) });
    this.#isNew = true;
  }

  /** All tokens of a call; null: not reported. */
  of(call: string): number | null {
    const tokens = this.#calls.get(call);
    return tokens === undefined ? null : Object.values(tokens).reduce((sum, one) => sum + one, 0);
  }

  /** What all calls have used so far; nothing when it has not changed. */
  updates(): Update[] {
    if (!this.#isNew) return [];
    this.#isNew = false;
    const { costMicros: _, modelCalls: __, ...tokens } = this.#calls.values().reduce(addUsage, NO_USAGE);
    return [{ sessionUpdate: SPENT, ...tokens }];
  }
}
