import type { Conversation } from '../../core/conversation.ts';
import { isStorageFault, ThroughlineError } from '../../core/errors.ts';
import { type Delayed, delayedElsewhere } from '../../core/limits/slots.ts';
import {
  continuable,
  type Hindrance,
  isHeld,
  isLeftInTheMiddle,
  isTakenBy,
  isThere,
  NO_HINDRANCE,
  runsAt,
  runsOnlyAt,
  type Standing,
  whyStranded,
} from '../../core/turn/standing.ts';
import { conversationLeases, freeDead } from '../../leases/lease-keeper.ts';
import type { Store } from '../../ports/store.ts';
import type { EngineParts } from '../parts.ts';
import type { Worker } from '../worker/worker.ts';

export interface Refreshed {
  /** Turns may have ended: what was read before is out of date. */
  readonly changed: boolean;
  /** By conversation: why its open turns do not run. Those that run are not in it. */
  readonly hindered: ReadonlyMap<string, Hindrance>;
}

/** Recorded as the mover when the settings moved a conversation, and no person did. */
const BY_SETTINGS = 'the settings';

const NOTHING: Refreshed = { changed: false, hindered: new Map() };

/** Finds out who runs the open turns of conversations, and why nobody does. */
export class Attendance {
  readonly #parts: EngineParts;
  readonly #worker: Worker;

  constructor(parts: EngineParts, worker: Worker) {
    this.#parts = parts;
    this.#worker = worker;
  }

  /**
   * Called before open turns are shown. Ends the turns that a dead process left in the middle (R4), and finds out why the others do not
   * run. Reads nothing if no conversation is given.
   */
  async refresh(owner: string, conversations: readonly string[]): Promise<Refreshed> {
    if (conversations.length === 0) return NOTHING;
    const { store } = this.#parts;
    const before = await store.standings(owner, conversations);
    const moved = await this.#takeOver(before);
    const ended = before.some((standing) => this.#isLeft(standing)) && (await this.#endLeft(before));
    const changed = moved || ended;
    const now = changed ? await store.standings(owner, conversations) : before;
    return { changed, hindered: new Map([...this.#delayed(now), ...(await this.#stranded(now))]) };
  }

  /**
   * Makes sure that a process can run the conversation. If no process runs in its place, it is moved here if the settings allow that;
   * otherwise throws `refused`. Returns the conversation as it is then.
   */
  async ensureServed(conversation: Conversation): Promise<Conversation> {
    const { stranded } = (await this.unserved([conversation]))(conversation);
    if (stranded === null) return conversation;
    if (this.#parts.settings.sandbox.moveHere) return this.#moveHere(conversation, BY_SETTINGS);
    throw new ThroughlineError('refused', stranded.message, { hint: stranded.hint });
  }

  /** Makes this place the place of the conversation (R8). Throws `conflict` while a process runs where it is now. */
  async move(conversation: Conversation, by: string): Promise<Conversation> {
    if (this.#isHere(conversation.place)) return conversation;
    const { stranded } = (await this.unserved([conversation]))(conversation);
    if (stranded !== null) return this.#moveHere(conversation, by);
    throw new ThroughlineError(
      'conflict',
      'The data home of this conversation has a running process: it continues there.',
      {
        hint: 'To move it without its files, stop that process first. If it is on another machine, wait three minutes after its end.',
      },
    );
  }

  async #moveHere({ owner, id }: Pick<Conversation, 'owner' | 'id'>, by: string): Promise<Conversation> {
    const { store, processes, sandboxes } = this.#parts;
    // Frees the leases of dead processes of this machine, which would otherwise have to expire first.
    await freeDead(conversationLeases(store), { processes, sandboxes });
    return store.moveConversation(owner, id, { place: sandboxes.place, name: sandboxes.home, by });
  }

  /** Returns why a conversation cannot be continued: no process runs in its place. */
  async unserved(conversations: readonly Conversation[]): Promise<(one: Conversation) => Hindrance> {
    const places = await this.#unservedOf(conversations);
    const { address } = this.#parts.store;
    const named = await Promise.all(
      [...places].map(async (place) => [place, await this.#parts.store.placeName(place)] as const),
    );
    const names = new Map(named);
    return ({ key, id, place, driver }) => {
      const name = driver === 'worker' ? names.get(place) : undefined;
      if (name === undefined) return NO_HINDRANCE;
      const why = continuable(runsOnlyAt(`"${key ?? id}"`, { home: name, place, store: address }));
      return { ...NO_HINDRANCE, stranded: { reason: 'other_home', ...why } };
    };
  }

  /** The places of these conversations in which no process runs. Reads nothing if all of them are here. */
  async #unservedOf(all: readonly Pick<Conversation, 'place' | 'driver'>[]): Promise<Set<string>> {
    const { store, processes } = this.#parts;
    const away = all.filter(({ place, driver }) => driver === 'worker' && !this.#isHere(place));
    const places = new Set(away.map(({ place }) => place));
    if (places.size === 0) return places;
    for (const taker of await store.takers()) if (isThere(taker, processes.status)) places.delete(taker.place);
    return places;
  }

  /** Moves here what waits in a place without a process, if the settings allow it. True: something was moved. */
  async #takeOver(standings: readonly Standing[]): Promise<boolean> {
    if (!this.#parts.settings.sandbox.moveHere || !this.#worker.takesUp) return false;
    const unheld = standings.filter((standing) => !this.#isHeld(standing));
    const places = await this.#unservedOf(unheld);
    const left = unheld.filter(({ place }) => places.has(place));
    for (const { owner, conversation: id } of left) await this.#moveHere({ owner, id }, BY_SETTINGS);
    return left.length > 0;
  }

  /** Its holder is dead, nobody holds it although a turn was sent, or this process is recording the end of that turn. */
  #isLeft(standing: Standing): boolean {
    const { holder, conversation } = standing;
    if (this.#worker.isRecovering(conversation)) return true;
    const held = this.#isHeld(standing);
    return (!held && holder !== null) || isLeftInTheMiddle(standing, held);
  }

  /** True: turns may have ended. Reading must work although the storage cannot be written, so a storage fault is not thrown. */
  async #endLeft(standings: readonly Standing[]): Promise<boolean> {
    try {
      await Promise.all(standings.map(({ conversation }) => this.#worker.recovered(conversation)));
      await this.#worker.endLeft();
      return true;
    } catch (error) {
      if (!isStorageFault(error)) this.#parts.onBug(error, 'ending what dead processes left');
      return false;
    }
  }

  #delayed(standings: readonly Standing[]): [string, Hindrance][] {
    return standings.flatMap((standing) => {
      const delayed = standing.driver === 'worker' ? this.#whyDelayed(standing) : null;
      return delayed === null ? [] : [[standing.conversation, { ...NO_HINDRANCE, delayed }]];
    });
  }

  #whyDelayed(standing: Standing): Delayed | null {
    const { holder, turn, place } = standing;
    if (holder !== null && this.#isHeldElsewhere(standing)) {
      return turn.state === 'queued' ? delayedElsewhere(turn.n) : null;
    }
    return this.#isHere(place) ? this.#worker.whyDelayed(standing) : null;
  }

  #isHeldElsewhere(standing: Standing): boolean {
    return this.#isHeld(standing) && !this.#worker.holds(standing.conversation);
  }

  async #stranded(standings: readonly Standing[]): Promise<[string, Hindrance][]> {
    const unheld = standings.filter((standing) => !this.#isHeld(standing));
    const takers = unheld.length === 0 ? [] : await this.#parts.store.takers();
    return unheld.flatMap((standing) => {
      const known = this.#parts.agents.has(standing.turn.agent);
      const here = this.#isHere(standing.place);
      const taken = this.#isTaken(standing, here && known, takers);
      const stranded = whyStranded(standing, { held: false, taken, here, known, store: this.#parts.store.address });
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
    return runsAt(place, this.#parts.sandboxes.place);
  }
}
