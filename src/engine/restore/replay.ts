import { withUnknownCost } from '../../core/limits/budget.ts';
import { condensedTo, condensedWhenOpened } from '../../core/restore/condensed.ts';
import type { Proof } from '../../core/restore/receipt.ts';
import { WHEN_REPLAY_FAILED } from '../../core/restore/restore-settings.ts';
import { PartsBuilder, type TurnRecord } from '../../core/turn/record.ts';
import { modelRetryIn, UPDATE_VERSION, type Update } from '../../core/turn/update.ts';
import { addUsage, NO_USAGE, type Usage } from '../../core/turn/usage.ts';
import type { AgentSession, Opened } from '../../ports/agent.ts';
import { starts } from '../starts.ts';
import { notTooDeep } from '../too-deep.ts';
import { nothingFits, progress, recordsWithin } from './deliver.ts';
import { isTooWeak, proveOpened } from './open.ts';
import {
  addSpent,
  type Delivered,
  NOTHING_DELIVERED,
  NOTHING_SPENT,
  type OpenSession,
  type RestoreRequest,
  type StepFailure,
} from './request.ts';
import { promptTold, toldByReplay, worded } from './told.ts';

/**
 * Sends the earlier prompts of the person, one by one. Only if no tool can run, or if the caller allows that tools run. The answers
 * belong to the restore and never become turns.
 */
export async function replay(open: OpenSession, request: RestoreRequest): Promise<Delivered | StepFailure> {
  const replayed = await replayAll(open, request);
  return 'failure' in replayed ? { hint: WHEN_REPLAY_FAILED, ...replayed } : replayed;
}

async function replayAll(open: OpenSession, request: RestoreRequest): Promise<Delivered | StepFailure> {
  const { held, traits, signal } = request;
  const { records, dropped, omitted, images } = await recordsWithin(0, request);
  if (records.length === 0) return nothingFits(dropped, request);
  let spent = NOTHING_SPENT;
  let condensed = 0;
  /** Null: the proof of the step counts. */
  let proof: Proof | null = null;
  const passed = new PassedSessions(open, request);
  await held.lease.write(progress('replay', 0, records.length, request));
  for (const [i, record] of records.entries()) {
    if (signal.aborted) return { failure: `it was stopped before turn ${record.n} was replayed`, spent };
    const isFirst = i === 0;
    const before = passed.last;
    const expected = isFirst || !traits.position ? null : await open.session.position();
    const said = await replayOne({ session: open.session, record, expected, passed, request });
    spent = addSpent(spent, { usage: said.failure === null ? counted(said.usage) : said.usage, toolsRan: said.tools });
    if (said.failure !== null) return { failure: `turn ${record.n} could not be replayed: ${said.failure}`, spent };
    if (said.tools.length > 0 && !request.settings.allowTools) {
      const failure = `a tool ran during the replay of turn ${record.n} although the agent's profile rules that out`;
      return { failure, spent };
    }
    if (!isFirst && passed.last !== before && !said.followed) {
      // The agent's session was told only some of the turns, and nothing shows whether it has the others.
      if (traits.position || isTooWeak('none', request)) return { failure: CHANGED, spent };
      proof = 'none';
    }
    condensed = condensedTo(record.n, said.condensed) ?? condensed;
    await held.lease.write(progress('replay', i + 1, records.length, request));
  }
  const reopened = traits.noTools ? await withTools(open, records, request) : null;
  if (reopened && 'failure' in reopened) return { ...reopened, spent };
  const session = reopened?.opened.session ?? null;
  if (held.lease.lost.aborted) {
    await session?.close();
    return { failure: 'the lease was lost' };
  }
  if (session !== null && session.id !== null) await passed.named(session.id);
  const prompts = records.map(({ n, prompt }) => promptTold(n, worded(open.session, prompt)));
  const told = { turns: records.length, dropped, omitted, images, told: prompts };
  const known = { condensedTo: condensed, watermark: held.conversation.head };
  return {
    ...NOTHING_DELIVERED,
    ...spent,
    ...told,
    session,
    parent: passed.last,
    proof: reopened?.proof === 'none' ? 'none' : proof,
    condensedTo: condensedWhenOpened(known, reopened?.opened.condensed),
  };
}

const CHANGED = 'during the replay the agent changed its session, and nothing shows that it kept the context';

/** Records the sessions that the agent named during a replay and left again. They are never used (R1). */
class PassedSessions {
  readonly #open: OpenSession;
  readonly #request: RestoreRequest;
  #current: string | null;
  /** Our reference of the last one; null: the agent stayed in one session. */
  last: string | null = null;

  constructor(open: OpenSession, request: RestoreRequest) {
    this.#open = open;
    this.#request = request;
    this.#current = open.session.id;
  }

  async named(id: string): Promise<void> {
    const left = this.#current;
    this.#current = id;
    if (left === null || left === id) return;
    const { held, agent } = this.#request;
    if (this.last === null && this.#open.ref !== null) {
      // It is in the lineage already.
      this.last = this.#open.ref;
      await held.putAside(agent, { ref: this.last, state: 'closed', reason: `the agent changed to ${id} in a replay` });
      return;
    }
    const parent = this.last ?? this.#open.parent;
    const origin = this.last === null ? this.#open.origin : 'rotated';
    const ref = crypto.randomUUID();
    const unused = { watermark: 0, dropped: 0, state: 'closed', position: null, process: null } as const;
    const storage = await held.storage(agent);
    const session = { ref, id: left, agent: agent.name, storage, origin, parent, ...unused };
    await held.lease.write({ write: 'open-session', session, turn: null });
    this.last = ref;
  }
}

/** One prompt of a replay. `expected`: the position that it must follow; null: none. */
interface ReplayedPrompt {
  readonly session: AgentSession;
  readonly record: TurnRecord;
  readonly expected: string | null;
  readonly passed: PassedSessions;
  readonly request: RestoreRequest;
}

/** `followed`: the agent's storage shows that the prompt followed the expected position. */
async function replayOne({ session, record, expected, passed, request: restore }: ReplayedPrompt) {
  const { signal, heard } = restore;
  const parts = new PartsBuilder();
  let usage = NO_USAGE;
  let failure: string | null = null;
  let followed = false;
  const request = { id: crypto.randomUUID(), content: record.prompt, expected, signal };
  for await (const said of session.prompt(request)) {
    const event = notTooDeep(said);
    heard?.();
    if (event.type === 'update') {
      parts.add(event.update);
      showRetry(event.update, restore);
    } else if (event.type === 'usage') usage = addUsage(usage, event.usage);
    else if (event.type === 'permission') session.answer(event.id, null);
    else if (event.type === 'session') await passed.named(event.id);
    else if (event.type === 'proof') followed = expected !== null && event.proof !== 'refuted';
    else if (event.type === 'ended') {
      const { outcome } = event;
      if (outcome.kind !== 'completed') failure = 'message' in outcome ? outcome.message : outcome.kind;
      if (outcome.kind === 'lost') usage = withUnknownCost(usage);
      break;
    }
  }
  const tools = parts.parts().filter((part) => part.type === 'tool');
  const names = tools.map((tool) => (tool.target ? `${tool.name} ${tool.target}` : tool.name));
  return { usage, failure, tools: names, condensed: parts.condensed, followed };
}

/** Of what the agent does in a replay, the turn shows only why that takes long. A warm-up has no turn that could show it. */
function showRetry(update: Update, { held, turn }: RestoreRequest): void {
  if (turn === null || modelRetryIn(update) === null) return;
  const event = { kind: 'turn.update', turn: turn.id, payload: { acp: UPDATE_VERSION, update } } as const;
  held.lease.say({ write: 'event', event });
}

interface Reopened {
  readonly opened: Extract<Opened, { ok: true }>;
  readonly proof: Proof;
}

/** The replay ran without tools; the turn itself gets them back, in place or by opening the session again. */
async function withTools(
  open: OpenSession,
  records: readonly TurnRecord[],
  request: RestoreRequest,
): Promise<Reopened | null | StepFailure> {
  if (await open.session.allowTools()) return null;
  const { held, agent, signal, choices = {} } = request;
  const id = open.session.id;
  if (id === null) return { failure: 'the agent did not name its session during the replay' };
  const position = await open.session.position();
  await open.session.close();
  const told = async () => records.map(toldByReplay);
  const how = { kind: 'resume', id, told } as const;
  const sandbox = await held.openSandbox();
  const opened = await starts.run(signal, () => agent.open({ how, sandbox, noTools: false, signal, choices }));
  if (!opened.ok) return { failure: `after the replay the agent refused to reopen its session: ${opened.message}` };
  // A replay into one process proves nothing about the next process, so this is proved as for any reopened session.
  const proof = await proveOpened(opened, position, request);
  if (proof !== 'refuted' && !isTooWeak(proof, request)) return { opened, proof };
  await opened.session.close();
  return { failure: 'after the replay nothing proves that the reopened session has the context' };
}

/** An agent that reports no model calls has made at least one for a prompt that it has answered. */
function counted(usage: Usage): Usage {
  return usage.modelCalls > 0 ? usage : { ...usage, modelCalls: 1 };
}
