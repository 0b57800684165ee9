import type { PublicEvent, PublicEventPayloads } from '../../core/public/event.ts';
import type { PublicReceipt } from '../../core/public/session.ts';
import type { ToolCallFields, Update } from '../../core/update.ts';
import { type Output, styled } from './output.ts';
import { receiptLine, turns } from './receipt-line.ts';
import { ReplyStream } from './reply-stream.ts';
import { oneLine } from './terminal-text.ts';

/** Shows a turn while it happens: the answer on stdout, all else beside it. */
export class TurnView {
  readonly #output: Output;
  #reply = new ReplyStream();
  readonly #tools = new Map<string, string>();
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
      case 'turn.started':
        output.progress(`turn ${event.payload.n} …`);
        break;
      case 'turn.update':
        this.#update(event.payload.update);
        break;
      case 'turn.retrying':
        this.#tryAgain(event.payload);
        break;
      case 'session.locked':
        output.progress(`the session is in use elsewhere; waiting (${event.payload.waits}) …`);
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
  }

  /** A tool is said when it begins, and when it fails. */
  #tool({ toolCallId, title, locations, status }: ToolCallFields): void {
    const known = this.#tools.get(toolCallId);
    const name = known ?? oneLine([title ?? 'tool', locations?.[0]?.path ?? ''].join(' '));
    if (known === undefined) this.#output.note(styled('dim', `tool: ${name}`));
    if (status === 'failed') this.#output.note(styled('dim', `tool failed: ${name}`));
    this.#tools.set(toolCallId, name);
  }

  /** What the failed attempt had said stays on the screen; the answer begins anew below it. */
  #tryAgain({ failure }: PublicEventPayloads['turn.retrying']): void {
    this.#output.endText();
    this.#output.note(styled('dim', `trying again: ${failure.message}`));
    this.#reply = new ReplyStream();
  }

  #end({ reply }: PublicEventPayloads['turn.ended']): void {
    this.#output.text(this.#reply.rest(reply));
    this.#output.endText();
    if (this.receipt) this.#output.note(styled('dim', receiptLine(this.receipt)));
  }
}

function progressLine({ rung, done, total }: PublicEventPayloads['restore.progress']): string {
  return `restoring by ${rung}: ${done} of ${turns(total)} …`;
}
