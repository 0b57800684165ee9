import { isObject } from '../../../core/turn/content.ts';
import { chunkText, type ModelRetry, printedText, retryUpdate, type Update } from '../../../core/turn/update.ts';
import { asObject } from '../../shared/json.ts';
import type { AboutAnswer, Quirks } from '../known/description.ts';
import { Answer } from './answer.ts';
import type { SessionState } from './state.ts';
import { TerminalTexts } from './terminal-texts.ts';
import { CostMeter } from './usage.ts';

interface UpdatesSettings {
  /** The note about the session's cost when it was last open; null: none. */
  readonly memo: string | null;
  readonly onWindow: (tokens: number) => void;
  /** Called whenever the agent reports the mode of the session, or its config options. */
  readonly onSettings: (update: Update) => void;
  /** Called in a turn when the agent asks its model again. */
  readonly onRetry: (retry: ModelRetry) => void;
}

/**
 * Sorts what an agent sends: updates of the running turn, updates that are kept for the next turn, and a repeated history. Changes no
 * update, and reports how many it drops. Adds retractions of what no longer counts of the answer.
 */
export class Updates {
  readonly #state: SessionState;
  readonly #between = new BetweenTurns();
  readonly #texts = new TerminalTexts();
  /** How many characters the tools of this turn have printed in pieces, by the ids of their calls. */
  readonly #printed = new Map<string, number>();
  readonly #answer = new Answer();
  readonly #cost: CostMeter;
  readonly #onSettings: UpdatesSettings['onSettings'];
  readonly #onRetry: UpdatesSettings['onRetry'];
  /** The session that is open here; null: its id is not known yet. */
  sessionId: string | null = null;
  /** See `Quirks`. */
  aboutAnswer: Quirks['aboutAnswer'];
  /** Why the model did not answer, in the agent's words; empty: it gives no reason; null: it has not reported that in this turn. */
  failure: string | null = null;
  /** A text that the agent sends as a message though it is no answer; null: none is expected. */
  banner: string | null = null;

  constructor(state: SessionState, { memo, onWindow, onSettings, onRetry }: UpdatesSettings) {
    this.#state = state;
    this.#cost = new CostMeter(memo, onWindow);
    this.#onSettings = onSettings;
    this.#onRetry = onRetry;
  }

  get memo(): string {
    return this.#cost.memo;
  }

  /** Keeps for the next turn what the agent reported in an answer, not in an update. */
  keep(updates: readonly Update[]): void {
    for (const update of updates) this.#between.keep(update, JSON.stringify(update).length);
  }

  /** A turn has begun: it gets what was kept for it. */
  begin(): void {
    this.#answer.begin();
    this.#printed.clear();
    this.failure = null;
    this.#report(this.#between.take());
    this.#reportCost();
  }

  /** The turn has completed: compares its texts with those in the agent's own record. */
  async compare(recordedTexts: (messageIds: readonly string[]) => Promise<ReadonlyMap<string, string>>): Promise<void> {
    const ids = [...this.#answer.texts.keys()];
    if (ids.length > 0) this.#report(this.#answer.recorded(await recordedTexts(ids)));
  }

  /** The agent has answered: compares what tools printed in pieces with the agent's own record. */
  async compareOutputs(
    recordedOutputs: (toolCallIds: readonly string[]) => Promise<ReadonlyMap<string, string>>,
  ): Promise<void> {
    if (this.#printed.size === 0) return;
    const recorded = await recordedOutputs([...this.#printed.keys()]);
    for (const [toolCallId, length] of this.#printed) {
      const text = recorded.get(toolCallId);
      if (text === undefined || text.length === length) continue;
      const content = [{ type: 'content', content: { type: 'text', text } }];
      this.#report([{ sessionUpdate: 'tool_call_update', toolCallId, content }]);
    }
  }

  /** The turn is about to end. `textOf`: the text of a terminal that was not released yet; null: there is no such terminal. */
  end(textOf: (terminalId: string) => string | null): void {
    this.#report(this.#texts.rest(textOf));
  }

  terminalReleased(id: string, text: string): void {
    this.#texts.released(id, text);
    this.#report(this.#texts.complete());
  }

  /** A notification as it came, and the length of its line. */
  notified(method: string, params: unknown, length: number): void {
    const { update, sessionId } = asObject(params);
    if (method !== 'session/update' || !isUpdate(update)) {
      this.#reportOrKeep({ sessionUpdate: '_acp/notification', method, params }, length);
    } else if (this.sessionId !== null && typeof sessionId === 'string' && sessionId !== this.sessionId) {
      // A session that the agent opened by itself.
      this.#reportOrKeep({ sessionUpdate: '_acp/other_session', sessionId, update }, length);
    } else this.#update(update, length);
  }

  #update(update: Update, length: number): void {
    const { onRepeated } = this.#state;
    if (update.sessionUpdate === 'usage_update') this.#spent(update);
    if (SETTINGS_UPDATES.includes(update.sessionUpdate)) this.#onSettings(update);
    onRepeated?.(update);
    if (onRepeated !== null && (isOfATurn(update) || CONTEXT_UPDATES.includes(update.sessionUpdate))) return;
    if (this.#reportOrKeep(this.#isBanner(update) ? betweenTurns(update) : update, length)) this.#texts.see(update);
  }

  get #running(): boolean {
    return this.#state.kind === 'prompting';
  }

  /** False: the update was kept for the next turn. */
  #reportOrKeep(update: Update, length: number): boolean {
    const running = this.#running;
    const about = this.aboutAnswer?.(update) ?? null;
    if (about === 'finished' || about === 'ours') {
      if (about === 'finished') this.#answer.finished();
    } else if (running) this.#report(this.#counted(update, about));
    else this.#between.keep(update, length);
    return running;
  }

  /** The update, with what it retracts of the answer so far. */
  #counted(update: Update, reported: AboutAnswer | null): Update[] {
    const text = update.sessionUpdate === 'agent_message_chunk' ? chunkText(update) : null;
    const about = reported === null && this.failure === '' && text !== null ? 'failed' : reported;
    if (about === null) {
      this.#countPrinted(update);
      return [update, ...this.#answer.see(update)];
    }
    if (about === 'failed') this.failure = text?.trim() ?? '';
    const unanswered = isOfATurn(update) ? betweenTurns(update) : update;
    if (typeof about === 'string') return [unanswered];
    this.#onRetry(about);
    return [unanswered, retryUpdate(about), ...this.#answer.retried()];
  }

  /** What comes together with the end of its tool is all of it. */
  #countPrinted(update: Update): void {
    const { toolCallId, status } = update as { readonly toolCallId?: unknown; readonly status?: unknown };
    const text = printedText(update) ?? '';
    if (typeof toolCallId !== 'string' || text === '' || status !== undefined) return;
    this.#printed.set(toolCallId, (this.#printed.get(toolCallId) ?? 0) + text.length);
  }

  #report(updates: Iterable<Update>): void {
    for (const update of updates) this.#state.flight?.events.push({ type: 'update', update });
  }

  /** Costs between two turns are reported with the next one. Costs in a repeated history were reported before. */
  #spent(update: Update): void {
    this.#cost.read(asObject(update), this.#state.kind === 'repeating');
    if (this.#state.flight !== null) this.#reportCost();
  }

  #reportCost(): void {
    const usage = this.#cost.take();
    if (usage !== null) this.#state.flight?.events.push({ type: 'usage', usage });
  }

  /** The banner comes before the first answer. It may come before the first turn. */
  #isBanner(update: Update): boolean {
    if (!this.#running || this.banner === null || update.sessionUpdate !== 'agent_message_chunk') return false;
    const is = chunkText(update) === this.banner;
    this.banner = null;
    return is;
  }
}

const SETTINGS_UPDATES: readonly string[] = ['current_mode_update', 'config_option_update'];

/** Updates of our own kinds. They report what only we can know, so an agent's are not accepted. */
const OURS = '_throughline/';

function isUpdate(value: unknown): value is Update {
  return isObject(value) && typeof value.sessionUpdate === 'string' && !value.sessionUpdate.startsWith(OURS);
}

/** Kinds of updates that belong to a turn. Sent between two turns, they would count as part of the next one. */
const TURN_UPDATES: readonly string[] = [
  'user_message_chunk',
  'agent_message_chunk',
  'agent_thought_chunk',
  'tool_call',
  'tool_call_update',
  'plan',
];

/** Kinds of updates about the context. In a repeated history they are old; between two turns they are new. */
const CONTEXT_UPDATES: readonly string[] = ['compaction_update', 'compaction_summary_chunk'];

function isOfATurn({ sessionUpdate }: Update): boolean {
  return TURN_UPDATES.includes(sessionUpdate);
}

/** The update in a form that does not count as part of the turn in which it is reported. */
function betweenTurns(update: Update): Update {
  return { sessionUpdate: '_acp/between_turns', update } as Update;
}

const MOST = 500;
const MOST_LENGTH = 4 * 1024 * 1024;

/** What an agent sends while no prompt is in flight. The next turn gets it: the newest of it, and the number of those dropped. */
export class BetweenTurns {
  #kept: { readonly update: Update; readonly length: number }[] = [];
  #length = 0;
  #dropped = 0;

  keep(update: Update, length: number): void {
    this.#kept.push({ update: isOfATurn(update) ? betweenTurns(update) : update, length });
    this.#length += length;
    while (this.#kept.length > MOST || this.#length > MOST_LENGTH) {
      this.#length -= this.#kept.shift()?.length ?? 0;
      this.#dropped += 1;
    }
  }

  /** Everything that was kept, oldest first. Empties it. */
  take(): Update[] {
    const kept = this.#kept.map(({ update }) => update);
    const dropped = this.#dropped;
    [this.#kept, this.#length, this.#dropped] = [[], 0, 0];
    return dropped === 0 ? kept : [{ sessionUpdate: '_acp/dropped', updates: dropped } as Update, ...kept];
  }
}
