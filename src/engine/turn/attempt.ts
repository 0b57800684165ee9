import { randomUUID } from 'node:crypto';
import { asSentence, type Failure, hasCode } from '../../core/errors.ts';
import { withUnknownCost } from '../../core/limits/budget.ts';
import type { BudgetWatch } from '../../core/limits/budget-watch.ts';
import { type DayLimit, leftOf, overspent } from '../../core/limits/spending.ts';
import { allCondensed } from '../../core/restore/condensed.ts';
import type { Proof, Receipt } from '../../core/restore/receipt.ts';
import { whenTooLong } from '../../core/restore/restore-settings.ts';
import { aside, type ContextUse } from '../../core/restore/session.ts';
import type { AgentTraits } from '../../core/restore/traits.ts';
import { choicesOf } from '../../core/turn/choices.ts';
import type { Prompt } from '../../core/turn/content.ts';
import type { Condensed, RecordPart } from '../../core/turn/record.ts';
import type { Sent, Turn } from '../../core/turn/turn.ts';
import type { TurnStop } from '../../core/turn/turn-decision.ts';
import { chunkText, showsAnswer, type Update } from '../../core/turn/update.ts';
import { addUsage, type Usage } from '../../core/turn/usage.ts';
import type { Agent, AgentEvent, AgentOutcome, AgentSession } from '../../ports/agent.ts';
import type { NewSession } from '../../ports/store/sessions.ts';
import type { Write } from '../../ports/store/writes.ts';
import type { OpenSession, Restored } from '../restore/request.ts';
import { promptTold, worded } from '../restore/told.ts';
import { notTooDeep } from '../too-deep.ts';
import { type Held, notNew } from '../worker/held.ts';
import { EventWriter } from './event-writer.ts';
import { PermissionDesk } from './permissions.ts';
import type { TurnSignal } from './turn-signal.ts';

export interface AttemptRequest {
  readonly held: Held;
  readonly agent: Agent;
  readonly traits: AgentTraits;
  readonly turn: Turn;
  /** Whether the turn was cancelled or replaced just before it began. */
  readonly takenAway: Promise<boolean>;
  readonly signal: TurnSignal;
  readonly restored: Restored;
  /** How much may be spent today. */
  readonly limits: readonly DayLimit[];
  /** Whether only a session that provably has the context may answer. */
  readonly required: boolean;
  /** What earlier attempts of the turn have cost. */
  readonly spent: Usage;
}

/** The record that a prompt was sent. Our prompts have an id. */
type SentByUs = Sent & { readonly prompt: string };

/** The result of one prompt that was sent. */
export interface AttemptResult {
  readonly session: AgentSession;
  /** Our reference of the session; null: the agent never named it. */
  readonly ref: string | null;
  readonly sessionId: string | null;
  readonly sent: Sent;
  readonly outcome: AgentOutcome | { readonly kind: 'refuted' };
  /** Null: it completed. */
  readonly failure: Failure | null;
  /** We read the agent's output to its end, and no tool had begun: sending again repeats no action. */
  readonly harmless: boolean;
  /** The agent says that the same prompt may work when sent again. */
  readonly again: boolean;
  readonly parts: readonly RecordPart[];
  /** What the agent replaced by a summary of its own; null: nothing. */
  readonly condensed: Condensed | null;
  /** How full its context is, as the agent last reported it; null: it has not. */
  readonly context: ContextUse | null;
  readonly title: string | null;
  /** How much of the session's transcript file was mirrored before. */
  readonly mirrored: number;
  readonly usage: Usage;
  /** The agent has reported what this prompt used. */
  readonly isUsageReported: boolean;
  readonly receipt: Receipt;
  readonly startedAt: number;
  readonly endedAt: number;
}

/** Sends one prompt to a restored session and stores all that comes back. */
export async function runAttempt(request: AttemptRequest): Promise<AttemptResult> {
  return new Attempt(request).run();
}

class Attempt {
  readonly #request: AttemptRequest;
  readonly #session: AgentSession;
  readonly #open: OpenSession;
  readonly #writer: EventWriter;
  readonly #desk: PermissionDesk;
  /** Null: there is no limit of spending. */
  readonly #watch: BudgetWatch | null;
  /** Aborts the prompt: by the turn's signal, or because the context was refuted. */
  readonly #abort = new AbortController();
  #ref: string | null;
  #sessionId: string | null;
  #usage: Usage;
  #isUsageReported = false;
  /** The last thing that the agent has shown is text of its model. */
  #isAnswering = false;
  #after: Proof | null = null;
  #fault: Failure | null = null;

  constructor(request: AttemptRequest) {
    const { held, turn, signal, restored } = request;
    const { settings } = held.parts;
    this.#request = request;
    this.#open = restored.open;
    this.#session = restored.open.session;
    this.#ref = restored.open.ref;
    this.#usage = request.spent;
    this.#sessionId = restored.open.session.id;
    this.#writer = new EventWriter(held.lease, turn.id, held.parts.clock, settings.flushMs);
    this.#watch = watchOf(request);
    const mode = turn.options.permissions ?? settings.permissions;
    this.#desk = new PermissionDesk(held.lease, signal, turn, mode, settings.permissionMs);
  }

  async run(): Promise<AttemptResult> {
    const { held, turn, signal, restored, agent } = this.#request;
    signal.sending();
    const startedAt = held.parts.clock.now();
    let outcome: AgentOutcome = { kind: 'lost', message: 'The agent ended without an answer.' };
    const content = restored.preface.length === 0 ? turn.prompt : [...restored.preface, ...turn.prompt];
    const sent = await this.#recordSent(content);
    const stop = () => this.#abort.abort(signal.stop);
    signal.signal.addEventListener('abort', stop, { once: true });
    try {
      if (signal.signal.aborted) stop();
      const expected = this.#open.position;
      const prompt = { id: sent.prompt, content, expected, signal: this.#abort.signal };
      for await (const said of this.#session.prompt(prompt)) {
        const event = notTooDeep(said);
        signal.heard(event.type === 'update' ? event.update : undefined);
        if (event.type === 'ended') {
          outcome = event.outcome;
          break;
        }
        await this.#handle(event);
      }
    } catch (error) {
      // The lease or the storage is lost: the agent must not continue unwatched.
      await this.#session.kill();
      throw error;
    } finally {
      signal.signal.removeEventListener('abort', stop);
      this.#writer.end();
      this.#desk.close();
    }
    // Of a session that is lost nothing more is taken, even if its process runs.
    if (outcome.kind === 'lost') await this.#session.kill();
    await this.#giveBack();
    if (outcome.kind === 'completed' && !this.#writer.answered) outcome = { ...outcome, ...NO_ANSWER };
    // It may have ended its turn before it was killed. It must not count as a live session.
    if (this.#fault) await this.#session.kill();
    if (this.#session.alive && this.#ref) {
      const unproved = finalProof(restored.receipt, this.#after) === 'none';
      // After an attempt before it, which the session may have seen, an untaken prompt says nothing about the session.
      const unsettled = outcome.kind !== 'completed' && !(isUntaken(outcome) && turn.attempt === 1);
      held.keepLive(agent.name, { ref: this.#ref, session: this.#session, unsettled, unproved });
    } else held.forgetLive(agent.name);
    return this.#result(outcome, sent, startedAt);
  }

  /** What the turn alone has chosen is given back (R7). If they cannot be set back, the session is closed, and opened again for the next turn. */
  async #giveBack(): Promise<void> {
    const { kept = {}, ...own } = choicesOf(this.#request.turn.options);
    if (Object.keys(own).length === 0 || !this.#session.alive) return;
    if ((await this.#session.choose?.(kept)) !== 'set') await this.#session.close();
  }

  /** One commit before the first byte leaves: the session, the receipt, and the fact of sending (R6). */
  async #recordSent(content: Prompt): Promise<SentByUs> {
    const { held, turn, takenAway, restored, agent } = this.#request;
    const opening: Write[] = [];
    const { session } = this.#open;
    if (this.#ref === null && session.id !== null)
      opening.push(await this.#openSession(session.id, this.#open.origin, this.#open.parent));
    opening.push(...this.#rememberOwed());
    const { receipt } = restored;
    const wording = worded(session, content);
    const prompt = promptTold(turn.n, wording);
    // A prompt that went out as it was given is not stored twice.
    const told = restored.told.length === 0 && wording === turn.prompt ? {} : { told: [...restored.told, prompt] };
    const sent: SentByUs = {
      attempt: turn.attempt,
      prompt: randomUUID(),
      session: this.#ref,
      position: this.#open.position,
      rung: receipt.rung,
      delivered: restored.delivered,
      told: prompt.sha256,
      process: session.process,
      at: held.parts.clock.now(),
    };
    const receiving: Write = { write: 'receipt', receipt, turn: turn.id, session: this.#ref };
    // From here on we have to end the process. Until it is in `live`, only this attempt knows it.
    try {
      await held.lease.write(...opening, receiving, { write: 'send', turn: turn.id, sent, ...told });
    } catch (error) {
      // If only the begin of the turn was refused, the caller decides about the session.
      if (!(await takenAway)) await held.end(agent, session, { force: true });
      throw error;
    }
    return sent;
  }

  /** Choices of the turn are undone after it. If this program dies before that, the next process that opens the session does so. */
  #rememberOwed(): Write[] {
    const { kept, ...own } = choicesOf(this.#request.turn.options);
    const { memo } = this.#session;
    // What a conversation keeps is set when a session is opened, and stays.
    const isSet = Object.keys(own).length > 0 || (kept !== undefined && this.#request.restored.receipt.rung !== 'live');
    if (this.#ref === null || memo === undefined || !isSet) return [];
    return [
      {
        write: 'change-session',
        ref: this.#ref,
        change: { memo },
        reason: 'model, mode or config options were chosen',
      },
    ];
  }

  async #handle(event: Exclude<AgentEvent, { type: 'ended' }>): Promise<void> {
    switch (event.type) {
      case 'update':
        this.#count(event.update);
        this.#request.held.parts.agents.get(this.#request.agent.name)?.announcements?.see(event.update);
        if (showsAnswer(event.update)) this.#isAnswering = chunkText(event.update) !== null;
        return this.#writer.add(event.update);
      case 'session':
        return this.#named(event.id);
      case 'usage':
        this.#usage = addUsage(this.#usage, event.usage);
        this.#isUsageReported = true;
        return;
      case 'permission':
        this.#writer.flush();
        return this.#desk.ask(event, this.#session);
      case 'proof':
        this.#after = event.proof;
        if (event.proof === 'refuted') this.#stopBecause({ code: 'context_refuted', message: event.detail });
        return;
    }
  }

  /** An agent that reports its spending during the turn is stopped when nothing is left. */
  #count(update: Update): void {
    if (!this.#watch?.see(update)) return;
    const { signal, limits, held } = this.#request;
    signal.stopFor(overspent(limits, held.parts.clock.now()));
  }

  /** The agent names its session, or has moved to another: recorded when seen (R1). */
  async #named(id: string): Promise<void> {
    if (id === this.#sessionId && this.#ref !== null) return;
    const { held, agent, traits } = this.#request;
    const isNew = this.#ref === null && this.#open.origin === 'new';
    if (isNew && traits.position && (await held.hasUsed(agent, id))) {
      return this.#stopBecause({ code: 'refused', message: asSentence(notNew(id)) });
    }
    if (this.#ref !== null) this.#doubt(id);
    const known = this.#ref;
    const knownId = this.#sessionId;
    const origin = known === null ? this.#open.origin : 'rotated';
    const open = await this.#openSession(id, origin, known ?? this.#open.parent);
    const writes: Write[] = [open];
    if (known !== null) {
      const reason = `the agent continued as ${id}`;
      writes.unshift({ write: 'change-session', ref: known, change: aside('dormant'), reason });
    }
    try {
      await this.#request.held.lease.write(...writes);
    } catch (error) {
      if (!hasCode(error, 'conflict')) throw error;
      // The session belongs to another conversation: nothing of this turn is read from it or written about it.
      this.#ref = known;
      this.#sessionId = knownId;
      this.#stopBecause({
        code: 'refused',
        message: `The agent answered with the session ${id}, which belongs to another conversation.`,
      });
    }
  }

  /** The agent changed its session, and nothing can show whether the new one has what only the old one was told. */
  #doubt(id: string): void {
    const { traits, restored, required } = this.#request;
    const { carried, condensed } = restored.receipt;
    // The new session has what comes with the prompt. An adopted one may have more than anybody could read.
    const isAll = carried + condensed === (restored.delivered?.count ?? 0) && !this.#open.unread;
    if (traits.position || isAll) return;
    this.#after = 'none';
    const message = `The agent changed to the session ${id}, and nothing shows that this session has the conversation.`;
    if (required) this.#stopBecause({ code: 'context_refuted', message });
  }

  async #openSession(id: string, origin: NewSession['origin'], parent: string | null): Promise<Write> {
    const { held, turn, agent } = this.#request;
    const storage = await held.storage(agent);
    const session: NewSession = {
      ref: randomUUID(),
      id,
      agent: agent.name,
      storage,
      origin,
      parent,
      // Until a turn completes, it is not known whether the session has what it was told (R9).
      watermark: 0,
      dropped: 0,
      condensedTo: this.#open.condensedTo,
      unread: this.#open.unread ?? false,
      state: 'live',
      position: null,
      process: this.#session.process,
    };
    this.#ref = session.ref;
    this.#sessionId = id;
    return { write: 'open-session', session, turn: turn.id };
  }

  /** The agent must stop: it would answer without the context, or in the session of another conversation. */
  #stopBecause(failure: Failure): void {
    this.#fault ??= failure;
    this.#abort.abort(failure.code);
    void this.#session.kill();
  }

  #result(outcome: AgentOutcome, sent: Sent, startedAt: number): AttemptResult {
    const { signal } = this.#request;
    const { parts } = this.#writer;
    const failure = this.#fault ?? this.#desk.explain(failureOf(outcome, signal.stop, this.#request.restored.receipt));
    // We killed the session, so nothing more will come from it.
    const readToTheEnd = outcome.kind === 'failed' || this.#fault !== null;
    return {
      session: this.#session,
      ref: this.#ref,
      sessionId: this.#sessionId,
      sent,
      outcome: this.#fault === null ? outcome : { kind: 'refuted' },
      failure,
      harmless: readToTheEnd && !parts.toolBegun,
      again: outcome.kind === 'failed' && outcome.again,
      parts: parts.parts(),
      condensed: parts.condensed,
      context: parts.context,
      title: parts.title,
      mirrored: this.#ref === this.#open.ref ? this.#open.mirrored : 0,
      usage: this.#isCostUnknown(outcome) ? withUnknownCost(this.#usage) : this.#usage,
      isUsageReported: this.#isUsageReported,
      receipt: this.#receipt(),
      startedAt,
      endedAt: this.#request.held.parts.clock.now(),
    };
  }

  /** The agent's process was ended before it could report what the prompt has cost, or its model was cut off in an answer. */
  #isCostUnknown({ kind }: AgentOutcome): boolean {
    const isCut = this.#isAnswering || (!this.#session.alive && !this.#isUsageReported);
    return kind === 'lost' || (kind === 'cancelled' && isCut);
  }

  /** With what the turn has shown of the session. If that is nothing: the same object that was stored with the prompt, which is then not stored again. */
  #receipt(): Receipt {
    const { receipt } = this.#request.restored;
    const { condensed } = this.#writer.parts;
    const [after, sessionId] = [this.#after, this.#sessionId];
    const proof = finalProof(receipt, after);
    const isKnown = after === null && proof === receipt.proof && sessionId === receipt.sessionId && condensed === null;
    if (isKnown) return receipt;
    return { ...(condensed === null ? receipt : allCondensed(receipt)), sessionId, after, proof };
  }
}

function watchOf({ held, agent, restored, limits }: AttemptRequest): BudgetWatch | null {
  if (limits.length === 0) return null;
  const watch = held.watchOf(agent.name, restored.open.origin === 'new');
  watch.begin(leftOf(limits));
  return watch;
}

/** Agents have said that a turn ended when their model could not be reached at all. */
const NO_ANSWER = {
  kind: 'failed',
  code: 'agent_failed',
  message: 'The agent ended the turn without an answer.',
  hint: 'It may not be logged in, or its model cannot be reached: see "throughline agents". "throughline retry KEY" sends the prompt again.',
  again: false,
} as const;

/** Why the turn did not complete, in words for people; null: it completed. */
function failureOf(outcome: AgentOutcome, stop: TurnStop | null, receipt: Receipt): Failure | null {
  if (outcome.kind === 'completed') return null;
  if (typeof stop === 'object' && stop !== null) return stop;
  if (stop === 'cancelled') return { code: 'cancelled', message: 'Cancelled.' };
  if (stop === 'shutdown') return { code: 'interrupted', message: 'This program was ended in the middle of the turn.' };
  if (outcome.kind === 'failed') {
    const { rung, carried, condensed } = receipt;
    const { code, message } = outcome;
    const hint = outcome.hint ?? (code === 'too_long' ? whenTooLong({ rung, told: carried + condensed }) : undefined);
    return { code, message, ...(hint === undefined ? {} : { hint }) };
  }
  if (outcome.kind === 'cancelled') return { code: 'cancelled', message: 'The agent reported that it was cancelled.' };
  return {
    code: 'agent_died',
    message: asSentence(outcome.message),
    hint: 'The part that it did is kept. "throughline retry KEY" sends the prompt again.',
  };
}

/** The prompt is not part of the session: it was not sent, or not taken. */
export function isUntaken(outcome: AttemptResult['outcome']): boolean {
  return outcome.kind === 'failed' && outcome.unsent === true;
}

/**
 * How well it is proved, after the turn, that the session had its context. That the prompt arrived proves nothing about a history
 * that was deliberately left out, or that nobody could read.
 */
function finalProof({ rung, unknownBefore, before }: Receipt, after: Proof | null): Proof {
  const lacks = rung === 'fresh' || unknownBefore !== null;
  return lacks && after === 'proved' ? before : (after ?? before);
}
