import { setImmediate as tick } from 'node:timers/promises';
import type { ProcessIdentity, SandboxProcess } from '../../../src/core/process.ts';
import type { AgentTraits } from '../../../src/core/restore/traits.ts';
import { renderTurn } from '../../../src/core/restore/transcript.ts';
import { type Prompt, promptText } from '../../../src/core/turn/content.ts';
import type { Update } from '../../../src/core/turn/update.ts';
import type {
  Agent,
  AgentEvent,
  AgentOutcome,
  AgentSession,
  Opened,
  OpenRequest,
  PromptRequest,
  Rewind,
  SentPrompt,
  Tail,
} from '../../../src/ports/agent.ts';
import type { Gate } from './gate.ts';
import type { Machine } from './machine.ts';
import type { Profile } from './profiles.ts';
import type { Delivery, Witness } from './witness.ts';

export const FOREIGN = 'somebody else was here';
const ANSWER = 'answer: ';
/** Replaces everything before the prompt that it follows. */
const SUMMARY = 'summary';

/** What an agent has on disk, shared by all of its processes: the prompts and answers of each session. */
export class AgentStorage {
  readonly sessions = new Map<string, string[]>();
  /** How many of the next openings find a lock. */
  locked = 0;
  /** The next session that is resumed is empty. `openly`: its storage shows that. `secretly`: it does not. */
  hollow: 'no' | 'openly' | 'secretly' = 'no';
  /** Sessions that were resumed empty by an agent whose storage cannot be read. What the storage has is not what the session has. */
  readonly beyondKnowing = new Set<string>();
  /** The id of another session, which the next new session gets. Null: it gets a new id. */
  stolen: string | null = null;
  readonly #name: string;
  #ids = 0;

  constructor(name: string) {
    this.#name = name;
  }

  newId(): string {
    this.#ids += 1;
    return `${this.#name}-session-${this.#ids}`;
  }

  position(id: string): string | null {
    const entries = this.sessions.get(id);
    return entries === undefined ? null : positionOf(entries);
  }
}

export interface Surroundings {
  readonly machine: Machine;
  readonly storage: AgentStorage;
  readonly gate: Gate;
  readonly witness: Witness;
}

/** An agent in this process, which can fail in every way at every moment. Each engine has its own object; all share one storage. */
export class AgentDouble implements Agent {
  readonly name: string;
  readonly profile: Profile;
  readonly around: Surroundings;

  constructor(name: string, profile: Profile, around: Surroundings) {
    this.name = name;
    this.profile = profile;
    this.around = around;
  }

  async traits(): Promise<AgentTraits> {
    return this.profile.traits;
  }

  open(request: OpenRequest): Promise<Opened> {
    return this.around.gate.through(async () => this.#open(request));
  }

  async #open({ how, noTools }: OpenRequest): Promise<Opened> {
    const { storage } = this.around;
    const { traits, rotates, namesLate } = this.profile;
    if (storage.locked > 0) {
      storage.locked -= 1;
      return { ok: false, reason: 'locked', message: 'another program has it' };
    }
    if (how.kind === 'resume') {
      if (!storage.sessions.has(how.id)) return { ok: false, reason: 'not_found', message: 'no such session' };
      const { hollow } = storage;
      storage.hollow = 'no';
      if (hollow !== 'no' && !traits.position && !traits.load) storage.beyondKnowing.add(how.id);
      if (hollow !== 'no') return this.#opened(how.id, [], noTools, hollow);
      const id = rotates === 'open' ? this.#moved(how.id) : how.id;
      const entries = storage.sessions.get(id) ?? [];
      const back = how.rewind ? backTo(how.rewind, entries) : null;
      if (back === 'refused')
        return { ok: false, reason: 'refused', message: 'more than that prompt would be dropped' };
      return this.#opened(id, entries, noTools, 'no', false, back);
    }
    if (how.kind === 'rehydrate') {
      if (storage.sessions.has(how.id)) return { ok: false, reason: 'in_use', message: 'that session is there' };
      const told =
        'records' in how.from ? how.from.records.map((record) => renderTurn(record)) : entriesOf(how.from.transcript);
      storage.sessions.set(how.id, told);
      return this.#opened(how.id, told, noTools, 'no');
    }
    const id = how.id ?? storage.stolen ?? storage.newId();
    storage.stolen = null;
    const entries = storage.sessions.get(id) ?? [];
    const keeps = traits.resume || traits.load;
    if (keeps && !namesLate) storage.sessions.set(id, entries);
    return this.#opened(id, entries, noTools, 'no', namesLate);
  }

  #opened(
    id: string,
    entries: string[],
    noTools: boolean,
    hollow: AgentStorage['hollow'],
    unnamed = false,
    back: Back | null = null,
  ): Opened {
    const { load, position } = this.profile.traits;
    const session = new SessionDouble(this, id, entries, { noTools, hollow, unnamed, back });
    const proof = position ? 'proved' : !load ? 'none' : hollow === 'no' ? 'consistent' : 'refuted';
    const left = back === null ? entries : entries.slice(0, back.length);
    return { ok: true, session, proof, condensed: left.includes(SUMMARY) };
  }

  #moved(id: string): string {
    const { storage } = this.around;
    const next = storage.newId();
    storage.sessions.set(next, [...(storage.sessions.get(id) ?? [])]);
    return next;
  }

  position(sessionId: string): Promise<string | null> {
    const { gate, storage } = this.around;
    return gate.through(async () => (this.profile.traits.position ? storage.position(sessionId) : null));
  }

  tail(sessionId: string, { prompt, position }: SentPrompt): Promise<Tail | null> {
    const { gate, storage } = this.around;
    return gate.through(async () => {
      const entries = storage.sessions.get(sessionId);
      if (entries === undefined) return null;
      const at = entries.findIndex((entry) => entry.startsWith(promptedBy(prompt)));
      const since = at === -1 ? [] : entries.slice(at + 1);
      const said = since.filter(isOwn);
      const stands = positionOf(entries);
      // The agent writes only answers to prompts. Everything else was written by somebody else.
      const ours = stands === position || (at !== -1 && said.length === since.length);
      return { updates: said.map(updateOf), position: ours ? stands : null };
    });
  }
}

function positionOf(entries: readonly string[]): string {
  return `${entries.length} ${entries.at(-1)?.slice(0, 40) ?? ''}`;
}

/** Whether the agent itself wrote the entry after a prompt. */
function isOwn(entry: string): boolean {
  return entry.startsWith(ANSWER) || entry === SUMMARY;
}

function updateOf(entry: string): Update {
  return entry === SUMMARY ? COMPACTION : chunk(entry.slice(ANSWER.length));
}

const COMPACTION: Update = { sessionUpdate: 'compaction_update', status: 'completed' };

/** A session that was opened as it was before its last prompt. Until the next prompt, its storage still has that one. */
interface Back {
  /** How many entries are left. */
  readonly length: number;
  readonly position: string;
  /** The position of the storage until the next prompt. */
  readonly over: string;
}

function backTo({ position, drops }: Rewind, entries: readonly string[]): Back | 'refused' {
  const length = entries.findLastIndex((entry) => entry.startsWith(promptedBy(drops)));
  if (length === -1 || positionOf(entries.slice(0, length)) !== position) return 'refused';
  const dropsMore = entries.slice(length + 1).some((entry) => !isOwn(entry));
  return dropsMore ? 'refused' : { length, position, over: positionOf(entries) };
}

/** How the entry of a prompt begins. */
export function promptedBy(id: string | null): string {
  return `prompt ${id}: `;
}

/** The storage of a session as a file: one line for each entry, so that it only grows at its end. */
function transcriptOf(entries: readonly string[]): Buffer {
  return Buffer.from(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
}

function entriesOf(transcript: Uint8Array): string[] {
  const lines = Buffer.from(transcript).toString().split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as string);
}

interface Manner {
  readonly noTools: boolean;
  readonly hollow: AgentStorage['hollow'];
  readonly unnamed: boolean;
  readonly back: Back | null;
}

class SessionDouble implements AgentSession {
  readonly process: SandboxProcess;
  readonly #self: ProcessIdentity;
  readonly #agent: AgentDouble;
  readonly #manner: Manner;
  readonly #answers = new Map<string, (optionId: string | null) => void>();
  #entries: string[];
  #named: boolean;
  #id: string;
  #noTools: boolean;
  #visitorIn = 0;
  #back: Back | null;

  constructor(agent: AgentDouble, id: string, entries: string[], manner: Manner) {
    this.#agent = agent;
    this.#id = id;
    this.#entries = entries;
    this.#manner = manner;
    this.#named = !manner.unnamed;
    this.#noTools = manner.noTools;
    this.#back = manner.back;
    this.#self = agent.around.machine.spawn();
    this.process = { kind: 'double', id: `${this.#self.pid}`, label: `process ${this.#self.pid}` };
  }

  get id(): string | null {
    return this.#named ? this.#id : null;
  }

  get alive(): boolean {
    return this.#agent.around.machine.isAlive(this.#self);
  }

  position(): Promise<string | null> {
    const { gate } = this.#agent.around;
    return gate.through(async () => {
      if (!this.#agent.profile.traits.position || !this.#named) return null;
      // The first read is by the attempt that failed, the second by the next attempt.
      if (this.#visitorIn > 0 && --this.#visitorIn === 0) this.#entries.push(FOREIGN);
      return this.#manner.hollow === 'openly' ? '0 hollow' : this.#stands();
    });
  }

  #stands(): string | null {
    const position = this.#agent.around.storage.position(this.#id);
    return this.#back !== null && position === this.#back.over ? this.#back.position : position;
  }

  /** What the session has in its context when it is given a prompt. */
  #context(): string[] {
    if (this.#agent.profile.forgets) return [];
    const entries = this.#entries.slice(0, this.#back?.length);
    return entries.slice(Math.max(0, entries.lastIndexOf(SUMMARY) - 1));
  }

  transcript(from: number): Promise<Uint8Array | null> {
    const { gate, storage } = this.#agent.around;
    return gate.through(async () => {
      const entries = storage.sessions.get(this.#id);
      const readable = this.#agent.profile.traits.rehydrate && entries !== undefined;
      return readable ? transcriptOf(entries).subarray(from) : null;
    });
  }

  async allowTools(): Promise<boolean> {
    if (!this.#noTools) return true;
    if (!this.#agent.profile.toolsInPlace) return false;
    this.#noTools = false;
    return true;
  }

  answer(permissionId: string, optionId: string | null): void {
    this.#answers.get(permissionId)?.(optionId);
    this.#answers.delete(permissionId);
  }

  close(): Promise<void> {
    return this.kill();
  }

  async kill(): Promise<void> {
    const { gate, machine } = this.#agent.around;
    await gate.pass().catch(() => {});
    machine.kill(this.#self);
  }

  async *prompt(request: PromptRequest): AsyncIterable<AgentEvent> {
    const { gate } = this.#agent.around;
    await gate.pass();
    const events = new Mailbox<AgentEvent>();
    // From here on the process works by itself, also when nobody reads its events.
    void this.#live(request, events);
    for (;;) {
      const event = await events.next();
      await gate.pass();
      yield event;
      if (event.type === 'ended') return;
    }
  }

  /** Works on one prompt, in steps. Between these the process may be killed or cancelled. */
  async #live(request: PromptRequest, events: Mailbox<AgentEvent>): Promise<void> {
    const { witness } = this.#agent.around;
    const delivery = await witness.delivered({
      agent: this.#agent.name,
      session: this.#id,
      id: request.id,
      context: [...this.#context(), promptText(request.content)].join('\n'),
      foreign: this.#entries.includes(FOREIGN),
      prompt: lastText(request.content),
      replayed: this.#noTools,
      named: this.#named,
    });
    const end = (outcome: AgentOutcome) => {
      delivery.result = outcome.kind;
      events.put({ type: 'ended', outcome });
    };
    try {
      const outcome = await this.#work(request, events, delivery);
      end(this.alive ? outcome : { kind: 'lost', message: 'the process ended' });
    } catch (stop) {
      if (stop !== STOP) witness.fault(stop);
      end(this.alive ? { kind: 'cancelled' } : { kind: 'lost', message: 'the process ended' });
    }
  }

  async #work(
    { id, content, expected, signal }: PromptRequest,
    events: Mailbox<AgentEvent>,
    delivery: Delivery,
  ): Promise<AgentOutcome> {
    const { traits, rotates } = this.#agent.profile;
    const script = delivery.script;
    await this.#step(signal);
    const stood = this.#agent.profile.forgets ? positionOf([]) : this.#stands();
    const before = this.#manner.hollow === 'no' ? stood : '0 hollow';
    if (this.#back !== null) this.#entries.length = this.#back.length;
    this.#back = null;
    if (rotates === 'prompt' && this.#manner.hollow === 'no') {
      this.#move(events);
      delivery.moved = !traits.position;
    }
    this.#entries.push(`${promptedBy(id)}${promptText(content)}`);
    if (!this.#named) this.#name(events);
    if (traits.position && expected !== null) {
      const proof = before === expected ? 'proved' : 'refuted';
      if (proof === 'refuted') delivery.refuted = true;
      events.put({ type: 'proof', proof, detail: 'seen in the storage' });
    }
    await this.#step(signal);
    if (script === 'condenses') {
      this.#entries.push(SUMMARY);
      events.put({ type: 'update', update: COMPACTION });
    }
    events.put({ type: 'update', update: chunk('Well. ') });
    // Not in a replay, which must end.
    if (script === 'hang' && delivery.turn !== null) await this.#wait(signal, new Promise(() => {}));
    if (script === 'fails and is used' && delivery.nth === 1) this.#visitorIn = 2;
    if (script === 'fails' || ((script === 'fails once' || script === 'fails and is used') && delivery.nth === 1)) {
      return { kind: 'failed', code: 'agent_failed', message: 'overloaded', again: true };
    }
    if (script === 'too long' && content.length > 1 && delivery.nth === 1) {
      return { kind: 'failed', code: 'too_long', message: 'too long', again: false };
    }
    if (script === 'asks') await this.#ask(events, signal, delivery);
    if (script.startsWith('tool')) await this.#tool(events, delivery);
    if (script === 'tool and failure')
      return { kind: 'failed', code: 'agent_failed', message: 'overloaded', again: true };
    if (script === 'death' || script === 'tool and death') this.#agent.around.machine.kill(this.#self);
    await this.#step(signal);
    this.#entries.push(`${ANSWER}${delivery.reply}`);
    events.put({ type: 'update', update: chunk(delivery.reply) });
    events.put({ type: 'usage', usage: { modelCalls: 1 } });
    return { kind: 'completed' };
  }

  async #ask(events: Mailbox<AgentEvent>, signal: AbortSignal, delivery: Delivery): Promise<void> {
    const options = [
      { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
      { optionId: 'no', name: 'No', kind: 'reject_once' },
    ] as const;
    const answered = new Promise<string | null>((resolve) => this.#answers.set('question', resolve));
    events.put({ type: 'permission', id: 'question', title: 'May I?', toolCall: null, options });
    if ((await this.#wait(signal, answered)) === 'yes') await this.#tool(events, delivery);
  }

  async #tool(events: Mailbox<AgentEvent>, delivery: Delivery): Promise<void> {
    if (this.#noTools) return;
    events.put({ type: 'update', update: { sessionUpdate: 'tool_call', toolCallId: '1', title: 'count' } });
    await tick();
    await this.#agent.around.witness.toolRuns(delivery, () => this.alive);
    if (!this.alive) throw STOP;
    events.put({ type: 'update', update: { sessionUpdate: 'tool_call_update', toolCallId: '1', status: 'completed' } });
  }

  #move(events: Mailbox<AgentEvent>): void {
    const { storage } = this.#agent.around;
    this.#id = storage.newId();
    this.#entries = this.#agent.profile.forgets ? [] : [...this.#entries];
    this.#name(events);
  }

  #name(events: Mailbox<AgentEvent>): void {
    this.#named = true;
    this.#agent.around.storage.sessions.set(this.#id, this.#entries);
    events.put({ type: 'session', id: this.#id });
  }

  async #step(signal: AbortSignal): Promise<void> {
    this.#agent.around.machine.activity += 1;
    await tick();
    if (signal.aborted || !this.alive) throw STOP;
  }

  /** Waits for something that may never happen. Throws when the process is killed or cancelled. */
  async #wait<T>(signal: AbortSignal, what: Promise<T>): Promise<T> {
    const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    const stop = Promise.race([aborted, this.#agent.around.machine.death(this.#self)]).then(() => STOP);
    const first = signal.aborted ? STOP : await Promise.race([what, stop]);
    if (first === STOP) throw STOP;
    return first as T;
  }
}

const STOP = Symbol('stopped');

class Mailbox<T> {
  readonly #items: T[] = [];
  #wake: (() => void) | null = null;

  put(item: T): void {
    this.#items.push(item);
    this.#wake?.();
  }

  async next(): Promise<T> {
    while (this.#items.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#items.shift() as T;
  }
}

function chunk(text: string) {
  return { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } as const;
}

/** The prompt itself. The block with the history comes before it. */
function lastText(content: Prompt): string {
  return promptText(content.slice(-1));
}
