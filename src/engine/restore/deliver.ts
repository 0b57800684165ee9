import { createHash, randomBytes } from 'node:crypto';
import { type ContentBlock, promptText } from '../../core/content.ts';
import type { Step } from '../../core/continuity.ts';
import { PartsBuilder, type TurnRecord } from '../../core/record.ts';
import { BudgetFiller, budgetFor, byteLength, estimateTokens, renderBlock, renderTurn } from '../../core/transcript.ts';
import type { Sent } from '../../core/turn.ts';
import { addUsage, NO_USAGE, type Usage } from '../../core/usage.ts';
import type { AgentSession } from '../../ports/agent.ts';
import type { OpenSession, RestoreRequest, StepFailure } from './restore.ts';
import { toldByReplay } from './told.ts';

/** What was given to a session before the prompt. */
export interface Delivered {
  /** Blocks to put before the prompt. */
  readonly preface: readonly ContentBlock[];
  readonly sent: Sent['delivered'];
  readonly turns: number;
  readonly tokens: number;
  readonly dropped: number;
  readonly unsettled: boolean;
  readonly usage: Usage;
  readonly toolsRan: readonly string[];
  /** The session to go on with, when delivering meant opening it once more; null: the same. */
  readonly session: AgentSession | null;
  /** Our reference of the last session that the agent passed through on the way; null: it stayed in one. */
  readonly parent: string | null;
}

/** What a restore has cost and done, also one that came to nothing. */
export type Spent = Pick<Delivered, 'usage' | 'toolsRan'>;

export const NOTHING_SPENT: Spent = { usage: NO_USAGE, toolsRan: [] };

export function addSpent(before: Spent, { usage, toolsRan }: Spent): Spent {
  return { usage: addUsage(before.usage, usage), toolsRan: [...before.toolsRan, ...toolsRan] };
}

export const NOTHING_DELIVERED: Delivered = {
  preface: [],
  sent: null,
  turns: 0,
  tokens: 0,
  dropped: 0,
  unsettled: false,
  usage: NO_USAGE,
  toolsRan: [],
  session: null,
  parent: null,
};

export function deliver(step: Step, open: OpenSession, request: RestoreRequest): Promise<Delivered | StepFailure> {
  if (step.deliver.what === 'prompts') return replay(open, request);
  const { after, unsettled } = step.deliver as { after: number; unsettled: boolean };
  return deliverBlock(step, after, unsettled, request);
}

/**
 * All that the session lacks, as one block before the prompt. Always as text: agents show their model an embedded resource after
 * the person's words, or only its address (docs/acp-agents.md). The hash is of what lies between the marks, these included.
 */
async function deliverBlock(
  step: Step,
  after: number,
  unsettled: boolean,
  request: RestoreRequest,
): Promise<Delivered | StepFailure> {
  const { records, rendered, dropped } = await recordsWithin(after, request);
  const first = records[0];
  const last = records.at(-1);
  if (first === undefined || last === undefined) {
    // With the policy "auto" a session that knows a part may go on; one that would know nothing is no restore at all.
    if (request.settings.policy === 'auto' && after > 0) return { ...NOTHING_DELIVERED, dropped, unsettled };
    const lacking =
      dropped === 1 ? 'the turn that it lacks does not fit' : `none of the ${dropped} turns that it lacks fits`;
    return { failure: `${lacking} into the budget` };
  }
  const text = renderBlock(rendered, { nonce: randomBytes(12).toString('hex'), dropped, unsettled });
  if (step.rung !== 'live') await progress(step, records.length, records.length, request);
  return {
    ...NOTHING_DELIVERED,
    // Some agents put nothing between two blocks.
    preface: [{ type: 'text', text: `${text}\n` }],
    sent: { from: first.n, to: last.n, count: records.length, hash: createHash('sha256').update(text).digest('hex') },
    turns: records.length,
    tokens: estimateTokens(byteLength(text)),
    dropped,
    unsettled,
  };
}

/** Whole turns after `after`, oldest first, as many of the newest as the budget allows. Reads no more than it takes. */
export async function recordsWithin(
  after: number,
  request: RestoreRequest,
): Promise<{ records: TurnRecord[]; rendered: string[]; dropped: number }> {
  const { hold, settings, traits, shrink } = request;
  const { owner, id, head, historyCount } = hold.conversation;
  const { store } = hold.parts;
  const lacking = after === 0 ? historyCount : await store.countRecordsAfter(owner, id, after);
  const filler = new BudgetFiller(budgetFor(settings, traits, shrink));
  const records: TurnRecord[] = [];
  for (let upTo = head; upTo > after && !filler.full; ) {
    const page = await store.recordsBefore(owner, id, { upTo, limit: PAGE });
    for (const record of page) {
      if (record.n <= after || !filler.offer(render(record))) break;
      records.push(record);
    }
    const oldest = page.at(-1);
    if (oldest === undefined) break;
    upTo = oldest.n - 1;
  }
  return { records: records.reverse(), rendered: filler.turns(), dropped: lacking - records.length };
}

/** Of a prompt that was refused as too long only the beginning is told: the whole would be refused again, and for ever. */
function render(record: TurnRecord): string {
  const said = promptText(record.prompt);
  if (record.failure?.code !== 'too_long' || said.length <= LONGEST_REFUSED) return renderTurn(record);
  const text = `${said.slice(0, LONGEST_REFUSED)}… [it was refused as too long: ${said.length} characters]`;
  return renderTurn({ ...record, prompt: [{ type: 'text', text }] });
}

/**
 * The earlier prompts of the person, one by one. Only where no tool can run, or where the caller accepted that: the answers
 * belong to the restore and never become turns.
 */
async function replay(open: OpenSession, request: RestoreRequest): Promise<Delivered | StepFailure> {
  const { hold, traits, signal } = request;
  const { records, dropped } = await recordsWithin(0, request);
  if (records.length === 0) return { failure: 'none of the history fits into the budget' };
  const step = { rung: 'replay' } as const;
  let spent = NOTHING_SPENT;
  const passed = new PassedSessions(open, request);
  await progress(step, 0, records.length, request);
  for (const [i, record] of records.entries()) {
    if (signal.aborted) return { failure: `it was stopped before turn ${record.n} was replayed`, spent };
    const said = await replayOne(open.session, record, passed, signal);
    spent = addSpent(spent, { usage: said.failure === null ? counted(said.usage) : said.usage, toolsRan: said.tools });
    if (said.failure !== null) return { failure: `turn ${record.n} could not be replayed: ${said.failure}`, spent };
    if (said.tools.length > 0 && !request.settings.allowTools) {
      const failure = `a tool ran during the replay of turn ${record.n} although the agent's profile rules that out`;
      return { failure, spent };
    }
    await progress(step, i + 1, records.length, request);
  }
  const session = traits.noTools ? await withTools(open, records, request) : null;
  if (session && 'failure' in session) return { ...session, spent };
  if (hold.lease.lost.aborted) return { failure: 'the lease was lost' };
  return { ...NOTHING_DELIVERED, ...spent, turns: records.length, dropped, session, parent: passed.last };
}

/** Sessions that the agent named during a replay and left again: recorded when seen, for the record only (R1). */
class PassedSessions {
  readonly #open: OpenSession;
  readonly #request: RestoreRequest;
  #current: string | null;
  last: string | null = null;

  constructor(open: OpenSession, request: RestoreRequest) {
    this.#open = open;
    this.#request = request;
    // One that is in the lineage already needs no second entry.
    this.#current = open.ref === null ? open.session.id : null;
  }

  async named(id: string): Promise<void> {
    const left = this.#current;
    this.#current = id;
    if (left === null || left === id) return;
    const { hold, agent } = this.#request;
    const parent = this.last ?? this.#open.parent;
    const origin = this.last === null ? this.#open.origin : 'rotated';
    const ref = crypto.randomUUID();
    const unused = { watermark: 0, dropped: 0, state: 'closed', position: null, process: null } as const;
    const storage = await hold.storage(agent);
    const session = { ref, id: left, agent: agent.name, storage, origin, parent, ...unused };
    await hold.lease.write({ write: 'open-session', session, turn: null });
    this.last = ref;
  }
}

async function replayOne(session: AgentSession, record: TurnRecord, passed: PassedSessions, signal: AbortSignal) {
  const parts = new PartsBuilder();
  let usage = NO_USAGE;
  let failure: string | null = null;
  const request = { id: crypto.randomUUID(), content: record.prompt, expected: null, signal };
  for await (const event of session.prompt(request)) {
    if (event.type === 'update') parts.add(event.update);
    else if (event.type === 'usage') usage = addUsage(usage, event.usage);
    else if (event.type === 'permission') session.answer(event.id, null);
    else if (event.type === 'session') await passed.named(event.id);
    else if (event.type === 'ended' && event.outcome.kind !== 'completed') {
      failure = 'message' in event.outcome ? event.outcome.message : event.outcome.kind;
    }
  }
  const tools = parts.parts().filter((part) => part.type === 'tool');
  return { usage, failure, tools: tools.map((tool) => (tool.target ? `${tool.name} ${tool.target}` : tool.name)) };
}

/** The replay ran without tools; the turn itself gets them back, in place or by opening the session again. */
async function withTools(
  open: OpenSession,
  records: readonly TurnRecord[],
  request: RestoreRequest,
): Promise<AgentSession | null | StepFailure> {
  if (await open.session.allowTools()) return null;
  const { hold, agent, traits, settings, signal } = request;
  const id = open.session.id;
  if (id === null) return { failure: 'the agent did not name its session during the replay' };
  const position = await open.session.position();
  await open.session.close();
  const told = async () => records.map(toldByReplay);
  const how = { kind: 'resume', id, told } as const;
  const opened = await agent.open({ how, sandbox: await hold.openSandbox(), noTools: false, signal });
  if (!opened.ok) return { failure: `after the replay the agent refused to reopen its session: ${opened.message}` };
  // What was replayed into one process says nothing of the next one: it is proved like any session that is reopened.
  const known = traits.position && position !== null;
  const proof = known ? ((await opened.session.position()) === position ? 'proved' : 'refuted') : opened.proof;
  if (proof !== 'refuted' && (proof !== 'none' || settings.policy === 'auto')) return opened.session;
  await opened.session.close();
  return { failure: 'after the replay nothing proves that the reopened session has it' };
}

/** An agent that reports no calls made at least one for a prompt that it has answered. */
function counted(usage: Usage): Usage {
  return usage.modelCalls > 0 ? usage : { ...usage, modelCalls: 1 };
}

async function progress(
  step: Pick<Step, 'rung'>,
  done: number,
  total: number,
  { hold, turn }: RestoreRequest,
): Promise<void> {
  if (step.rung !== 'resume' && step.rung !== 'rehydrate' && step.rung !== 'transcript' && step.rung !== 'replay')
    return;
  const event = {
    kind: 'restore.progress',
    turn: turn?.id ?? null,
    payload: { rung: step.rung, done, total },
  } as const;
  await hold.lease.write({ write: 'event', event });
}

const PAGE = 100;
const LONGEST_REFUSED = 500;
