import { ThroughlineError } from '../core/errors.ts';
import { shown } from '../core/input/arguments.ts';
import type { PublicEvent } from '../core/public/event.ts';
import type { PublicPermission } from '../core/public/turn.ts';
import { allowOption, denyOption } from '../core/turn/permission.ts';
import type { Engine } from '../ports/engine.ts';

/**
 * Answers a question that an agent asks during a turn: with the id of one of its options, or with `allow` or `deny`, which mean
 * once. The signal aborts when the question is over: somebody else answered, it was denied, or its turn ended.
 */
export type OnPermission = (question: PublicPermission, context: { readonly signal: AbortSignal }) => Answered;
type Answered = string | Promise<string>;

/**
 * Brings the questions of one turn to a function of the caller. When that throws, or returns no answer, the turn is cancelled: the
 * agent must not continue on an answer that nobody gave.
 */
export class Answerer {
  readonly #engine: Engine;
  readonly #answer: OnPermission;
  readonly #open = new Map<string, AbortController>();
  /** What the caller's function threw first. */
  fault: { readonly error: unknown } | null = null;

  constructor(engine: Engine, answer: OnPermission) {
    this.#engine = engine;
    this.#answer = answer;
  }

  /** Until the turn ends. An engine that is closed meanwhile has ended its turns. */
  async watch(events: AsyncIterable<PublicEvent>): Promise<void> {
    try {
      for await (const event of events) this.#see(event);
    } finally {
      for (const open of this.#open.values()) open.abort();
    }
  }

  #see(event: PublicEvent): void {
    switch (event.kind) {
      case 'permission.asked': {
        const open = new AbortController();
        this.#open.set(event.payload.permissionId, open);
        void this.#ask(event.payload.permissionId, open.signal).catch((error) => this.#failed(event, error));
        break;
      }
      case 'permission.answered':
      case 'permission.denied':
      case 'permission.withdrawn':
        this.#open.get(event.payload.permissionId)?.abort();
    }
  }

  async #ask(id: string, signal: AbortSignal): Promise<void> {
    const question = await this.#engine.permission(id);
    // A turn that is repeated by its request id may have had its answers long ago.
    if (question.state !== 'open') return;
    const answer = await this.#answer(question, { signal });
    if (!signal.aborted) await this.#engine.answer(id, optionOf(question, answer));
  }

  async #failed({ turnId }: PublicEvent, error: unknown): Promise<void> {
    // Somebody else was faster, or the question is over.
    if (error instanceof ThroughlineError && (error.code === 'conflict' || error.code === 'closed')) return;
    this.fault ??= { error };
    if (turnId !== null) await this.#engine.cancel(turnId).catch(() => {});
  }
}

function optionOf({ options }: PublicPermission, answer: unknown): string {
  const byId = options.find(({ optionId }) => optionId === answer);
  const option =
    byId ?? (answer === 'allow' ? allowOption(options) : null) ?? (answer === 'deny' ? denyOption(options) : null);
  if (option !== null && option !== undefined) return option.optionId;
  throw new ThroughlineError('invalid', `onPermission returned ${shown(answer)}, which is not an answer.`, {
    hint: `Answers: ${options.map(({ optionId }) => optionId).join(', ')}; or allow, deny.`,
  });
}
