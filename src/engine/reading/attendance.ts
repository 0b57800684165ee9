import type { Conversation } from '../../core/conversation.ts';
import { isStorageFault, ThroughlineError } from '../../core/errors.ts';
import {
  forkable,
  type Hindrance,
  isHeld,
  isLeftInTheMiddle,
  isTakenBy,
  isThere,
  NO_HINDRANCE,
  runsOnlyAt,
  type Standing,
  whyStranded,
} from '../../core/turn/standing.ts';
import type { Store } from '../../ports/store.ts';
import type { EngineParts } from '../parts.ts';
import type { Worker } from '../worker/worker.ts';

/** What a look at conversations with open turns found. */
export interface Looked {
  /** Turns may have ended by it: what was read before is out of date. */
  readonly changed: boolean;
  /** By conversation: why its open turns do not run. Those that run are not in it. */
  readonly hindered: ReadonlyMap<string, Hindrance>;
}

const NOTHING: Looked = { changed: false, hindered: new Map() };

/**
 * Who runs the open turns of conversations. Whoever looks at a turn that a dead process left in the middle brings it to its end
 * (R4); of all other turns that nobody runs, the reason is found. Costs nothing where no turn is open.
 */
export class Attendance {
  readonly #parts: EngineParts;
  readonly #worker: Worker;

  constructor(parts: EngineParts, worker: Worker) {
    this.#parts = parts;
    this.#worker = worker;
  }

  async look(owner: string, conversations: readonly string[]): Promise<Looked> {
    if (conversations.length === 0) return NOTHING;
    const { store } = this.#parts;
    const before = await store.standings(owner, conversations);
    const changed = before.some((standing) => this.#isLeft(standing)) && (await this.#settle(before));
    const now = changed ? await store.standings(owner, conversations) : before;
    return { changed, hindered: new Map([...this.#delayed(now), ...(await this.#stranded(now))]) };
  }

  /** A conversation of another data home is run there or not at all. Throws `refused` while no process does it. */
  async checkRuns({ key, id, place }: Conversation): Promise<void> {
    if (this.#isHere(place)) return;
    const { store, processes } = this.#parts;
    const takers = await store.takers();
    if (takers.some((taker) => taker.place === place && isThere(taker, processes.status))) return;
    const { message, hint } = forkable(runsOnlyAt(`"${key ?? id}"`, await store.placeName(place), place));
    throw new ThroughlineError('refused', message, { hint });
  }

  /** Its holder is dead, or nobody holds it in the middle of a turn, or this process is about to end that turn. */
  #isLeft(standing: Standing): boolean {
    const { holder, conversation } = standing;
    if (this.#worker.isRecovering(conversation)) return true;
    const held = this.#isHeld(standing);
    return (!held && holder !== null) || isLeftInTheMiddle(standing, held);
  }

  /** True: turns may have ended. A storage that cannot be written must not keep anybody from reading. */
  async #settle(standings: readonly Standing[]): Promise<boolean> {
    try {
      await Promise.all(standings.map(({ conversation }) => this.#worker.recovered(conversation)));
      await this.#worker.settle();
      return true;
    } catch (error) {
      if (!isStorageFault(error)) this.#parts.onBug(error, 'ending what dead processes left');
      return false;
    }
  }

  #delayed(standings: readonly Standing[]): [string, Hindrance][] {
    return standings.flatMap((standing) => {
      const mayRun = standing.driver === 'worker' && this.#isHere(standing.place) && !this.#isElsewhere(standing);
      const delayed = mayRun ? this.#worker.whyDelayed(standing) : null;
      return delayed === null ? [] : [[standing.conversation, { ...NO_HINDRANCE, delayed }]];
    });
  }

  /** Another process holds it. */
  #isElsewhere(standing: Standing): boolean {
    return this.#isHeld(standing) && !this.#worker.holds(standing.conversation);
  }

  async #stranded(standings: readonly Standing[]): Promise<[string, Hindrance][]> {
    const unheld = standings.filter((standing) => !this.#isHeld(standing));
    const takers = unheld.length === 0 ? [] : await this.#parts.store.takers();
    return unheld.flatMap((standing) => {
      const known = this.#parts.agents.has(standing.turn.agent);
      const here = this.#isHere(standing.place);
      const taken = this.#isTaken(standing, here && known, takers);
      const stranded = whyStranded(standing, { held: false, taken, here, known });
      return stranded === null ? [] : [[standing.conversation, { ...NO_HINDRANCE, stranded }]];
    });
  }

  #isTaken(standing: Standing, canRun: boolean, takers: Awaited<ReturnType<Store['takers']>>): boolean {
    if (canRun && (this.#worker.takesUp || this.#worker.attends(standing))) return true;
    return isTakenBy(standing, takers, this.#parts.processes.status);
  }

  #isHeld(standing: Standing): boolean {
    const isOurs = standing.holder !== null && this.#worker.attends(standing);
    return isOurs || isHeld(standing, this.#parts.processes.status);
  }

  #isHere(place: string): boolean {
    return place === 'any' || place === this.#parts.sandboxes.place;
  }
}
