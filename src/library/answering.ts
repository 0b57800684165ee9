import { hasCode, ThroughlineError } from '../core/errors.ts';
import { shown } from '../core/input/arguments.ts';
import type { PublicEvent } from '../core/public/event.ts';
import type { PublicPermission } from '../core/public/turn.ts';
import { allowOption, denyOption } from '../core/turn/permission.ts';
import type { Engine } from '../ports/engine.ts';

/**
 * Answers a question that an agent asks during a turn: with the id of one of its options, or with `allow` or `deny`, which mean
 * once. Null or undefined leaves it to others: anybody who follows the conversation may answer, and it is denied when nobody does in
 * time. The signal aborts when the question is over: somebody else answered, it was denied, or its turn ended.
 *
 * @example
 * import { type OnPermission, open } from 'throughline';
 *
 * const onPermission: OnPermission = ({ title }) => (title.startsWith('Read ') ? 'allow' : null);
 * await using tl = await open({ onPermission });
 */
export type OnPermission = (question: PublicPermission, context: { readonly signal: AbortSignal }) => Answered;
type Given = string | null | undefined;
type Answered = Given | Promise<Given>;

/** Throws `invalid` unless it is a function, or left out. */
export function checkOnPermission(answer: unknown): void {
  if (answer === undefined || typeof answer === 'function') return;
  throw new ThroughlineError('invalid', `onPermission must be a function, not ${shown(answer)}.`, {
    hint: 'To allow everything: onPermission: () => "allow". To ask nobody: permissions: "deny".',
  });
}

/**
 * The turns whose questions a function of this process answers. A turn may have several `Answer` objects (`send` repeated, `pending()`
 * called several times): its questions are still asked once, by the function that was given first.
 */
const answered = new Set<string>();

/**
 * Passes the questions of one turn to a function of the caller. If it throws, or returns an invalid answer, the turn is cancelled: the
 * agent must not continue without an answer. After the question is over, neither has an effect. While the server is unreachable, the
 * answer is sent again, until the question is over.
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

  /** Watches until the turn ends. */
  async watch(turn: string, events: AsyncIterable<PublicEvent>): Promise<void> {
    if (answered.has(turn)) return;
    answered.add(turn);
    try {
      for await (const event of events) this.#see(event);
    } finally {
      answered.delete(turn);
      for (const open of this.#open.values()) open.abort();
    }
  }

  #see(event: PublicEvent): void {
    switch (event.kind) {
      case 'permission.asked': {
        const open = new AbortController();
        this.#open.set(event.payload.permissionId, open);
        // A function that passes the signal on throws when it aborts.
        const failed = (error: unknown) => (open.signal.aborted ? undefined : this.#failed(event, error));
        void this.#ask(event.payload.permissionId, open.signal).catch(failed);
        break;
      }
      case 'permission.answered':
      case 'permission.denied':
      case 'permission.withdrawn':
        this.#open.get(event.payload.permissionId)?.abort();
    }
  }

  async #ask(id: string, signal: AbortSignal): Promise<void> {
    const question = await retryWhileAway(() => this.#engine.permission(id), signal);
    // If the turn is repeated by its request id, its questions may be over already.
    if (question.state !== 'open') return;
    const answer = await this.#answer(question, { signal });
    if (answer === null || answer === undefined) return;
    const option = optionOf(question, answer);
    if (!signal.aborted) await retryWhileAway(() => this.#engine.answer(id, option, { from: 'program' }), signal);
  }

  async #failed({ turnId }: PublicEvent, error: unknown): Promise<void> {
    // Somebody else was faster, or the question is over.
    if (hasCode(error, 'conflict', 'closed')) return;
    this.fault ??= { error };
    if (turnId !== null) await this.#engine.cancel(turnId).catch(() => {});
  }
}

/** Short, because the client itself has tried for long before it reports `unreachable`. */
const AGAIN_MS = 500;

/** Tries again while the server is unreachable, until the signal aborts. */
async function retryWhileAway<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!hasCode(error, 'unreachable') || signal.aborted) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

function optionOf({ options }: PublicPermission, answer: unknown): string {
  const byId = options.find(({ optionId }) => optionId === answer);
  const option =
    byId ?? (answer === 'allow' ? allowOption(options) : null) ?? (answer === 'deny' ? denyOption(options) : null);
  if (option !== null && option !== undefined) return option.optionId;
  throw new ThroughlineError('invalid', `onPermission returned ${shown(answer)}, which is not an answer.`, {
    hint: `Answers: ${options.map(({ optionId }) => optionId).join(', ')}; or allow, deny. Null leaves it to others.`,
  });
}
