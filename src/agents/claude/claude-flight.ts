import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentOutcome, PromptRequest } from '../../ports/agent.ts';
import { Flight, type Stopping } from '../shared/flight.ts';
import type { TurnReader } from './messages.ts';
import { FileWatch } from './transcript/file-watch.ts';

/** A prompt on its way to Claude, and from there into its transcript. */
export class ClaudeFlight extends Flight {
  readonly request: PromptRequest;
  readonly turn: TurnReader;
  /** Where it must land; undefined: nothing to check. */
  readonly landsAt: string | null | undefined;
  /** The prompt has left: what Claude says before that is no answer to it. */
  sent = false;
  proved = false;
  ending = false;
  #watch: { readonly path: string; readonly file: FileWatch } | null = null;

  constructor(stopping: Stopping, about: Pick<ClaudeFlight, 'request' | 'turn' | 'landsAt'>) {
    super(stopping);
    this.request = about.request;
    this.turn = about.turn;
    this.landsAt = about.landsAt;
  }

  /** Resolves when the transcript has changed, after so many ms at the latest. Null: it is not known yet which that is. */
  async written(path: string | null, ms: number): Promise<void> {
    if (this.#watch?.path !== path) this.#watchAt(path);
    await (this.#watch?.file.next(ms) ?? sleep(ms));
  }

  override end(outcome: AgentOutcome): void {
    super.end(outcome);
    this.#watchAt(null);
  }

  #watchAt(path: string | null): void {
    this.#watch?.file.close();
    this.#watch = path === null || this.events.ended ? null : { path, file: new FileWatch(path) };
  }
}
