import { type Span, SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api';
import type { PublicReceipt } from '../../../core/public/session.ts';
import type { PublicTurn } from '../../../core/public/turn.ts';
import type { EndedTurn, Telemetry } from '../../../ports/telemetry.ts';

/** One span per turn, with the attributes of OpenTelemetry for generative AI. */
export class TurnSpans implements Telemetry {
  readonly #tracer: Tracer;
  readonly #open = new Map<string, Span>();

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  turnBegun({ id, agent, conversationId, n, attempt }: PublicTurn): void {
    // A turn that a killed server had begun gets a new span. A repeated start in this process is the same span.
    if (this.#open.has(id)) return;
    const span = this.#tracer.startSpan(`invoke_agent ${agent}`, {
      kind: SpanKind.CLIENT,
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': agent,
        'gen_ai.conversation.id': conversationId,
        'throughline.turn.id': id,
        'throughline.turn.n': n,
        'throughline.turn.attempt': attempt,
      },
    });
    this.#open.set(id, span);
  }

  restored(
    { rung, proof, carried, condensed, dropped, modelCalls, lockWaits }: PublicReceipt,
    turn: string | null,
  ): void {
    const span = turn === null ? undefined : this.#open.get(turn);
    const facts = { rung, proof, carried, condensed, dropped, model_calls: modelCalls, lock_waits: lockWaits.count };
    for (const [name, value] of Object.entries(facts)) span?.setAttribute(`throughline.restore.${name}`, value);
  }

  turnEnded({ id, outcome, failure, usage, sessionId }: EndedTurn): void {
    const span = this.#open.get(id);
    this.#open.delete(id);
    if (span === undefined) return;
    span.setAttributes({
      'throughline.turn.outcome': outcome,
      'gen_ai.usage.input_tokens': usage.inputTokens,
      'gen_ai.usage.output_tokens': usage.outputTokens,
      ...(sessionId !== null && { 'throughline.session.id': sessionId }),
      ...(failure !== null && { 'error.type': failure.code }),
    });
    if (outcome === 'failed' || outcome === 'interrupted') {
      span.setStatus({ code: SpanStatusCode.ERROR, message: failure?.code ?? outcome });
    }
    span.end();
  }
}
