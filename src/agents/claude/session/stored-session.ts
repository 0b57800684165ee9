import { setTimeout as sleep } from 'node:timers/promises';
import type { PromptRequest } from '../../../ports/agent.ts';
import { Flight, mustFollow, type Stopping } from '../../shared/flight.ts';
import { entriesFrom } from '../transcript/position.ts';
import type { Rewound } from './rewind.ts';
import type { SessionFile } from './session-file.ts';
import type { TurnReader } from './turn-reader.ts';

/** A prompt on its way to Claude, and from there into its transcript. */
export class ClaudeFlight extends Flight {
  readonly request: PromptRequest;
  readonly turn: TurnReader;
  /** The position that the prompt must follow; undefined: nothing to check. */
  readonly follows: string | null | undefined;
  /** The prompt was found in the transcript, and the proof was reported. */
  proved = false;

  constructor(stopping: Stopping, about: Pick<ClaudeFlight, 'request' | 'turn' | 'follows'>) {
    super(stopping);
    this.request = about.request;
    this.turn = about.turn;
    this.follows = about.follows;
  }
}

/** How long Claude may take to write what it streamed. Mostly it has done so when its result comes. */
const WRITE_GRACE_MS = 3_000;
/** To check an unchanged file takes one system call. Each pause is about a tenth of the time waited so far, so a turn ends hardly later. */
const FIRST_PAUSE_MS = 1;
const LONGEST_PAUSE_MS = 200;

/** A process that is started later knows only what is in the transcript, not what was streamed. */
const INCOMPLETE = {
  type: 'proof',
  proof: 'counted',
  detail: 'not all that Claude said is in its transcript',
} as const;

/** What the transcript of an open session shows: the position of the session, and whether each turn is in it. */
export class StoredSession {
  /** Null: the session's id cannot be the name of a file. */
  #file: SessionFile | null;
  readonly #rewound: Rewound | null;
  /** False: the session had no prompt yet, so it must be empty. */
  #prompted: boolean;
  /** False: Claude streamed more than its file holds. Until a later turn finds all of it, the position is not known. */
  #complete = true;
  /** Entries that were not in the file when they were last looked for. */
  #missing: readonly string[] = [];

  constructor(file: SessionFile | null, { empty, rewound }: { empty: boolean; rewound: Rewound | null }) {
    this.#file = file;
    this.#prompted = !empty;
    this.#rewound = rewound;
  }

  get seal() {
    return this.#file?.sealer.seal ?? null;
  }

  /** See `SessionFile`. */
  get compaction(): string | null {
    return this.#file?.compactionAt() ?? null;
  }

  async position(): Promise<string | null> {
    const position = this.#complete ? ((await this.#file?.position()) ?? null) : null;
    return this.#rewound && position === this.#rewound.filePosition ? this.#rewound.position : position;
  }

  async copy(from: number): Promise<Uint8Array | null> {
    return this.#complete ? ((await this.#file?.copy(from)) ?? null) : null;
  }

  /** Whether the session was rewound and has got no prompt since: its file still ends with the one that failed. */
  async isRewound(): Promise<boolean> {
    return this.#rewound !== null && (await this.position()) === this.#rewound.position;
  }

  /** See `mustFollow`. */
  follows(expected: string | null): string | null | undefined {
    return mustFollow(expected, this.#prompted);
  }

  /** Claude continues in another file. */
  moveTo(file: SessionFile | null): void {
    this.#file = file;
  }

  /** This prompt will be the next one in the file. */
  async mark(prompt: string): Promise<void> {
    await this.#file?.mark(prompt);
  }

  /** Reads the file while Claude writes it, so that the proof comes early, and little has to be read after the result. */
  async follow(flight: ClaudeFlight): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; !flight.ended; pause = longer(pause)) {
      await sleep(pause, undefined, { ref: false });
      await this.#prove(flight);
    }
  }

  /**
   * Waits until the transcript holds what was streamed of the turn, if Claude is `alive`. Returns the position after this turn alone; null:
   * not known. Somebody else may have continued from there; the next turn will find that.
   */
  async recorded(flight: ClaudeFlight, alive: boolean): Promise<string | null> {
    this.#prompted = true;
    this.#complete = await this.#written(flight, alive ? WRITE_GRACE_MS : 0);
    if (!this.#complete && flight.follows !== undefined) flight.events.push(INCOMPLETE);
    return this.#complete ? (this.#file?.ownPosition ?? null) : null;
  }

  /**
   * The position after a prompt that Claude did not take. It includes entries that Claude itself wrote about that, but none of
   * somebody else.
   */
  async positionWithout({ expected }: PromptRequest): Promise<string | null> {
    const file = this.#file;
    const found =
      file && expected !== null ? await entriesFrom(file.transcript, { prompt: null, position: expected }) : null;
    const position = expected === null || !this.#complete ? await this.position() : (found?.position ?? null);
    // A file that exists may contain something, even if it cannot be read.
    if (file === null || (await file.transcript.exists())) this.#prompted = true;
    return position;
  }

  async #written(flight: ClaudeFlight, graceMs: number): Promise<boolean> {
    const expected = [flight.request.id, ...flight.turn.entries];
    // Counts pauses instead of reading the clock: a machine that is too busy for us is too busy for Claude as well.
    for (let pause = FIRST_PAUSE_MS, waited = 0; ; waited += pause, pause = longer(pause)) {
      await this.#prove(flight);
      const all = expected.every((uuid) => this.#file?.has(uuid));
      if (all || flight.turn.writesLost || waited >= graceMs) break;
      await sleep(pause);
    }
    const late = this.#missing.filter((uuid) => (this.#file?.positionAt(uuid) ?? null) === null);
    this.#missing = [...late, ...expected.filter((uuid) => !this.#file?.has(uuid))];
    // A file that was deleted during the turn holds only the rest of it.
    return this.#missing.length === 0 && (this.#file?.chain?.root ?? null) !== null;
  }

  /** Reports where the prompt landed, as soon as it is in the file. */
  async #prove(flight: ClaudeFlight): Promise<void> {
    const file = this.#file;
    await file?.read();
    if (flight.proved || !file) return;
    const proof = file.landing(flight.request.id, flight.follows ?? null);
    if (proof === null) return;
    flight.proved = true;
    if (flight.follows !== undefined) flight.events.push(proof);
  }
}

function longer(pause: number): number {
  return Math.min(pause * 1.1, LONGEST_PAUSE_MS);
}
