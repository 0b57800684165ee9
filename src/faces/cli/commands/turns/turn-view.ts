import type { PublicEvent, PublicEventPayloads } from '../../../../core/public/event.ts';
import type { PublicReceipt } from '../../../../core/public/session.ts';
import { ReplyStream } from '../../../../core/turn/reply.ts';
import type { ToolCallFields, Update } from '../../../../core/turn/update.ts';
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
  receipt: PublicReceipt | null = null;

  constructor(output: Output) {
    this.#output = output;
  }

  see(event: PublicEvent): void {
    if (event.kind === 'restore.receipt') this.receipt = event.payload;
    if (!this.#output.json) this.#show(event);
  }

  #show(event: PublicEvent): void {
    const output = this.#output;
    switch (event.kind) {
      case 'turn.queued':
        this.#agent = oneLine(event.payload.agent);
        output.waitFor(`turn ${event.payload.n} waits to begin …`);
        break;
      case 'turn.started':
        output.progress(`starting ${this.#agent} …`);
        break;
      case 'turn.requeued':
        output.progress(`turn ${event.payload.n} waits to begin again …`);
        break;
      case 'turn.sent':
        output.progress(this.#doing());
        break;
      case 'permission.answered':
      case 'permission.denied':
      case 'permission.withdrawn':
        output.waitFor(this.#doing());
        break;
      case 'turn.update':
        this.#update(event.payload.update);
        break;
      case 'turn.retrying':
        this.#retrying(event.payload);
        break;
      case 'turn.stalled':
        output.note(styled('dim', `${stalledLine(event.payload)}; Ctrl-C cancels it`));
        break;
      case 'session.locked':
        output.progress(`another program is using the session; waiting (${event.payload.waits}) …`);
        break;
      case 'restore.started':
        output.progress(`restoring the context by ${event.payload.rung}: ${turns(event.payload.total)} …`);
        break;
      case 'restore.progress':
        output.progress(progressLine(event.payload));
        break;
      case 'turn.ended':
        this.#end(event.payload);
        break;
    }
  }

  #update(update: Update): void {
    this.#output.text(this.#reply.add(update));
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
    const name = known ?? oneLine([title ?? 'tool', locations?.[0]?.path ?? ''].join(' '));
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

function progressLine({ rung, done, total }: PublicEventPayloads['restore.progress']): string {
  return `restoring by ${rung}: ${done} of ${turns(total)} …`;
}
