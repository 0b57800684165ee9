import type { PublicEvent, PublicEventPayloads } from '../../../../core/public/event.ts';
import type { PublicReceipt } from '../../../../core/public/session.ts';
import { ReplyStream } from '../../../../core/turn/reply.ts';
import {
  modelRetryIn,
  retryText,
  showsAnswer,
  type ToolCallFields,
  type Update,
} from '../../../../core/turn/update.ts';
import type { Handlers } from '../../events.ts';
import { handle } from '../../events.ts';
import { RECOVERED, receiptLine, stalledLine, turns } from '../../lines.ts';
import { type Output, styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';

/** Shows a turn while it runs: the answer on stdout, everything else on stderr. */
export class TurnView {
  readonly #output: Output;
  #reply = new ReplyStream();
  readonly #tools = new Map<string, string>();
  /** Those that run, by id, in the order in which they began. */
  readonly #running = new Map<string, string>();
  #agent = 'the agent';
  /** The API of the model did not answer, and nothing of an answer has come since. */
  #unanswered = false;
  receipt: PublicReceipt | null = null;

  constructor(output: Output) {
    this.#output = output;
  }

  see(event: PublicEvent): void {
    if (event.kind === 'restore.receipt') this.receipt = event.payload;
    if (!this.#output.json) handle(this.#handlers, event);
  }

  readonly #handlers: Handlers = {
    'turn.queued': ({ payload: { n, agent } }) => {
      this.#agent = oneLine(agent);
      this.#output.waitFor(`turn ${n} waits to begin …`);
    },
    'turn.started': () => this.#output.progress(`starting ${this.#agent} …`),
    'turn.requeued': ({ payload: { n } }) => this.#output.progress(`turn ${n} waits to begin again …`),
    'turn.sent': () => this.#output.progress(this.#doing()),
    'permission.answered': () => this.#output.waitFor(this.#doing()),
    'permission.denied': () => this.#output.waitFor(this.#doing()),
    'permission.withdrawn': () => this.#output.waitFor(this.#doing()),
    'turn.update': ({ payload }) => this.#update(payload.update),
    'turn.retrying': ({ payload }) => this.#retrying(payload),
    'turn.stalled': ({ payload }) => this.#output.note(styled('dim', `${stalledLine(payload)}; Ctrl-C cancels it`)),
    'session.locked': ({ payload: { waits } }) =>
      this.#output.progress(`another program is using the session; waiting (${waits}) …`),
    'restore.started': ({ payload: { rung, total } }) =>
      this.#output.progress(`restoring the context by ${rung}: ${turns(total)} …`),
    'restore.progress': ({ payload: { rung, done, total } }) =>
      this.#output.progress(`restoring by ${rung}: ${done} of ${turns(total)} …`),
    'turn.ended': ({ payload }) => this.#end(payload),
  };

  #update(update: Update): void {
    this.#output.text(this.#reply.add(update));
    const retry = modelRetryIn(update);
    if (retry !== null) {
      this.#unanswered = true;
      this.#output.explainWait(`${oneLine(retryText(retry))} …`);
    } else if (this.#unanswered && showsAnswer(update)) {
      this.#unanswered = false;
      this.#output.waitFor(this.#doing());
    }
    if (update.sessionUpdate === 'tool_call' || update.sessionUpdate === 'tool_call_update') {
      this.#tool(update as ToolCallFields);
    }
    if (update.sessionUpdate === 'compaction_update' && update.status === 'in_progress') {
      this.#output.progress('the agent condenses the conversation …');
    }
  }

  /** A tool is shown when it starts, and when it fails. */
  #tool({ toolCallId, title, locations, status }: ToolCallFields): void {
    const known = this.#tools.get(toolCallId);
    const name = known ?? oneLine([title ?? 'tool', locations?.[0]?.path ?? ''].join(' '), 'code');
    if (known === undefined) this.#output.note(styled('dim', `tool: ${name}`));
    if (status === 'failed') this.#output.note(styled('dim', `tool failed: ${name}`));
    this.#tools.set(toolCallId, name);
    if (status === 'completed' || status === 'failed') this.#running.delete(toolCallId);
    else this.#running.set(toolCallId, name);
    this.#output.waitFor(this.#doing());
  }

  #doing(): string {
    const tool = [...this.#running.values()].at(-1);
    return tool === undefined ? `waiting for ${this.#agent} …` : `${this.#agent} runs ${tool} …`;
  }

  /** The text of the failed attempt stays on the screen; the new answer starts below it. */
  #retrying({ failure }: PublicEventPayloads['turn.retrying']): void {
    this.#output.endText();
    this.#output.note(styled('dim', `trying again: ${failure.message}`));
    this.#output.waitFor('waiting to try again …');
    this.#reply = new ReplyStream();
  }

  #end({ reply, recovered }: PublicEventPayloads['turn.ended']): void {
    this.#output.waitFor(null);
    this.#output.text(this.#reply.end(reply));
    this.#output.endText();
    if (recovered) this.#output.note(styled('dim', RECOVERED));
    if (this.receipt) this.#output.note(styled('dim', receiptLine(this.receipt)));
  }
}
