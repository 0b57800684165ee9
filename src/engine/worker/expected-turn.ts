import type { Enqueued, NewTurn } from '../../ports/store/turns.ts';
import type { Entry } from './turn-loop.ts';

/** A turn that is about to be accepted. */
export interface Expected {
  readonly owner: string;
  readonly turn: NewTurn;
  /** Told once, whatever happens, what the store is asked to do with it; null: nothing, and it is still to be accepted. */
  accept(taken: Promise<Enqueued | null>): void;
}

/**
 * Expects a turn at a hold that is warm. Until it is accepted, `looking` keeps later ones from overtaking it. `enqueue`: how it
 * is accepted without what was foreseen for it.
 */
export function expectTurn(
  entry: Entry,
  owner: string,
  turn: NewTurn,
  enqueue: () => Promise<Enqueued>,
): { expected: Expected; accepted: Promise<Enqueued> } {
  const looked = Promise.withResolvers<unknown>();
  entry.looking = looked.promise;
  void looked.promise.then(() => {
    entry.looking = null;
  });
  const accepted = Promise.withResolvers<Enqueued>();
  const accept = (taken: Promise<Enqueued | null>) => {
    // Where it was refused together with what was to follow, it is accepted without that, or its submitter hears why not.
    accepted.resolve(taken.then((done) => (done === null ? enqueue() : answerOf(done))));
    // After the line above: whoever waits must not come before one that was refused, and is asked for again.
    taken.then(looked.resolve, looked.resolve);
  };
  return { expected: { owner, turn, accept }, accepted: accepted.promise };
}

/** What became of it under the lease is nobody's business but ours. */
function answerOf({ turn, seq, duplicate }: Enqueued): Enqueued {
  return { turn, seq, duplicate };
}
