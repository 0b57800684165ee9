import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { type Conversation, checkDriver } from '../../core/conversation.ts';
import { hasCode, issuesIds, noSuch, noSuchConversation, ThroughlineError } from '../../core/errors.ts';
import { checkText, given } from '../../core/input/arguments.ts';
import { type Actor, checkAgent, looksLikeId } from '../../core/input/names.ts';
import { perDayBy } from '../../core/limits/spending.ts';
import { parseTimes } from '../../core/limits/time-limits.ts';
import { parseQueueChanges } from '../../core/queue.ts';
import { continues, parseTurnRestore, type TurnRestore } from '../../core/restore/restore-settings.ts';
import { isUsable } from '../../core/restore/session.ts';
import { choicesOf, keptFor, mergeChoices, parseChoices } from '../../core/turn/choices.ts';
import { parsePrompt } from '../../core/turn/content.ts';
import { type Hindrance, runsAt } from '../../core/turn/standing.ts';
import { hasEnded, isPermissionMode, type Turn, type TurnOptions } from '../../core/turn/turn.ts';
import type { Agent } from '../../ports/agent.ts';
import type { SubmitOptions } from '../../ports/engine.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import type { AdoptedSession, Enqueued, NewTurn, Requeue, Requeued } from '../../ports/store/turns.ts';
import type { EarlyStart } from '../early-start.ts';
import type { EngineParts } from '../parts.ts';
import type { Attendance } from '../reading/attendance.ts';
import { askedStarts } from '../starts.ts';
import type { Worker } from '../worker/worker.ts';
import { checkChoices, ensureConversation, findConversation, newConversation } from './conversations.ts';

/*
 * The way of a prompt into the store. Everything that can never work is refused before anything is stored.
 *
 *   submit ─▶ check prompt and options ─▶ first prompt of a new key: the conversation is created in the same commit (conversations.ts)
 *                                     └─▶ otherwise: is there a process that can run it? ─▶ enqueue ─▶ the worker looks for the turn
 *
 * `retry` submits an earlier prompt again, and `requeue` moves, changes or replaces turns that wait. The other files of this folder: erase.ts deletes a
 * conversation, portable.ts exports and imports one, agents.ts lists the agents.
 */

interface Intake {
  readonly parts: EngineParts;
  readonly earlyStart: EarlyStart | null;
  readonly worker: Worker;
  readonly attendance: Attendance;
}

/** Stores a prompt durably (R3). What can never work is refused here, and nothing is stored. */
export async function submit(
  intake: Intake,
  { owner, by }: Actor,
  conversation: string,
  prompt: unknown,
  options: SubmitOptions,
): Promise<Enqueued> {
  const blocks = parsePrompt(prompt);
  const { parts, worker, earlyStart } = intake;
  const settings = typeof options.create === 'object' ? options.create : null;
  for (const agent of [options.agent, settings?.agent]) checkAgent(parts, agent);
  const found =
    worker.heldConversation(owner, conversation) ?? (await parts.store.findConversation(owner, conversation));
  const known =
    found === null || settings === null
      ? found
      : await ensureConversation(parts, owner, { ...settings, key: conversation });
  const { requestId = null, agent = null } = options;
  const said = { requestId, agent, prompt: blocks, options: turnOptions(options), retryOf: null };
  const asked = { ...said, ...(by !== owner && { by }) };
  if (known !== null) await startEarly(intake, known, asked);
  try {
    const turn = await (known === null
      ? firstTurn(intake, owner, conversation, asked, options)
      : laterTurn(intake, owner, known, asked));
    return waitFor(worker, owner, await parts.store.enqueue(owner, turn));
  } catch (error) {
    await earlyStart?.end();
    // Another process has created it meanwhile: it may have other settings.
    const isTaken = known === null && settings !== null && hasCode(error, 'conflict');
    if (!isTaken || (await parts.store.findConversation(owner, conversation)) === null) throw error;
    return submit(intake, { owner, by }, conversation, prompt, options);
  }
}

/** Starts the agent's program while the prompt is stored, and tells it nothing. Not for a request that may be a repeat: it may need none. */
async function startEarly(
  { parts, earlyStart }: Intake,
  known: Conversation,
  { agent, requestId }: Asked,
): Promise<void> {
  const { store, agents, sandboxes, settings } = parts;
  const { owner, id: conversation, head, place } = known;
  const isReady = head > 0 && runsAt(place, sandboxes.place) && settings.sandbox.setup.length === 0;
  if (earlyStart === null || requestId !== null || known.driver !== 'worker' || !isReady) return;
  // Not for the default agent: finding the installed agents takes a while. A wrong agent is reported when the turn is stored.
  const name = await store.agentFor(owner, { conversation, agent, defaultAgent: null }).catch(() => null);
  const configured = name === null ? undefined : agents.get(name);
  if (configured !== undefined) await earlyStart.begin(configured.agent, known);
}

type Asked = Pick<NewTurn, 'requestId' | 'agent' | 'prompt' | 'options' | 'retryOf' | 'by'>;

/** The first turn of a conversation, which it creates. Throws `not_found` for a name that looks like an id of ours. */
async function firstTurn(
  intake: Intake,
  owner: string,
  key: string,
  asked: Asked,
  { create, agent }: SubmitOptions,
): Promise<NewTurn> {
  if (create === false) throw noSuchConversation(key, { isRefused: true });
  if (create === undefined && looksLikeId(key)) {
    throw noSuch(
      'conversation',
      key,
      'It looks like an id of ours, and the conversation may have been erased. Use another key for a new one, or say that this is a ' +
        'key ("create": true).',
    );
  }
  const settings = typeof create === 'object' ? create : null;
  const creates = await newConversation(intake.parts, owner, { ...given({ agent }), ...settings, key });
  const turn = { ...newTurn(intake.parts, owner, creates, asked), creates, ...(settings && { isFirst: true }) };
  return withSession(intake, owner, { ...creates, isNew: true }, turn);
}

async function laterTurn(intake: Intake, owner: string, found: Conversation, asked: Asked): Promise<NewTurn> {
  checkDriver(found);
  const isHere = runsAt(found.place, intake.parts.sandboxes.place);
  const conversation = isHere ? found : await intake.attendance.ensureServed(found);
  const turn = newTurn(intake.parts, owner, conversation, asked);
  return withSession(intake, owner, { ...conversation, isNew: false }, turn);
}

/** Stores the prompt of an ended turn again. A session that the turn named, or an id that it chose, is not used again. */
export async function retry(
  intake: Intake,
  { owner, by }: Actor,
  { turn: ended, hindrance }: { readonly turn: Turn; readonly hindrance: Hindrance },
  { permissions, requestId }: Pick<SubmitOptions, 'requestId' | 'permissions'>,
): Promise<Enqueued> {
  const { id, conversation, agent, prompt, state } = ended;
  const found = await findConversation(intake.parts.store, owner, conversation);
  checkDriver(found);
  if (!hasEnded(state)) {
    const { stranded } = hindrance;
    const hint = stranded === null ? 'Cancel it first, or wait for its end.' : `${stranded.message} ${stranded.hint}`;
    throw new ThroughlineError('conflict', `The turn is still ${state}.`, { hint });
  }
  await intake.attendance.ensureServed(found);
  const { session: _, newSession: __, ...rest } = ended.options;
  const options = { ...rest, ...turnOptions(given({ permissions })) };
  const repeated = { requestId: requestId ?? null, agent, prompt, options, retryOf: id };
  const turn = newTurn(intake.parts, owner, found, { ...repeated, ...(by !== owner && { by }) });
  return waitFor(intake.worker, owner, await intake.parts.store.enqueue(owner, turn));
}

/** This process runs the turn, unless another one claims it first. */
function waitFor(worker: Worker, owner: string, enqueued: Enqueued): Enqueued {
  const { id, conversation, state } = enqueued.turn;
  if (!hasEnded(state)) worker.want(owner, conversation, id);
  return enqueued;
}

/** Changes the queue of a conversation. New turns run in the process that would have run those they replace. */
export async function requeue(
  { parts, worker }: Intake,
  conversation: Conversation,
  turns: unknown,
  { requestId, by }: Pick<Requeue, 'requestId' | 'by'>,
): Promise<Requeued> {
  checkDriver(conversation);
  if (requestId !== null) checkText(requestId, 'request id');
  const changes = parseQueueChanges(turns).map((change) => ({ ...change, id: randomUUIDv7() }));
  const { owner, id } = conversation;
  const requeued = await parts.store.requeue(owner, { conversation: id, changes, requestId, by });
  const added = requeued.duplicate ? [] : requeued.queue.filter(({ replaces }) => replaces !== null);
  if (worker.attends({ owner, conversation: id })) for (const { turnId } of added) worker.want(owner, id, turnId);
  return requeued;
}

function newTurn(
  { settings, agents }: EngineParts,
  owner: string,
  { id: conversation }: Pick<Conversation, 'id'>,
  asked: Asked,
): NewTurn {
  if (asked.requestId !== null) checkText(asked.requestId, 'request id');
  const { defaultAgent, permissions } = settings;
  const perDay = perDayBy(settings.spending, owner);
  const known = { defaultAgent, permissions, agents: [...agents.keys()], perDay };
  return { id: randomUUIDv7(), conversation, ...known, ...asked };
}

type ConversationOfTurn = Pick<Conversation, 'id' | 'sandbox' | 'cwd'> & { readonly isNew: boolean };

/**
 * Checks what the turn chooses of its agent, and the id that the caller chose for a new session, or reads the session that the turn adopts. A
 * repeated request needs none of it.
 */
async function withSession(
  intake: Intake,
  owner: string,
  conversation: ConversationOfTurn,
  turn: NewTurn,
): Promise<NewTurn> {
  const { store, agents } = intake.parts;
  const { session, newSession } = turn.options;
  const own = choicesOf(turn.options);
  const begins = turn.creates?.choices ?? {};
  const chooses = Object.keys({ ...own, ...begins }).length > 0;
  if (session === undefined && newSession === undefined && !chooses) return turn;
  if (turn.requestId !== null && (await store.findRequest(owner, turn.requestId)) !== null) return turn;
  const name = conversation.isNew
    ? (turn.agent ?? turn.creates?.agent ?? turn.defaultAgent)
    : await store.agentFor(owner, turn);
  const agent = name === null ? undefined : agents.get(name)?.agent;
  if (agent === undefined) return turn;
  await checkChoices(
    agent,
    mergeChoices(keptFor(begins, agent.name), own),
    intake.worker.living(conversation.id, agent.name),
  );
  if (newSession !== undefined) await checkTakesId(intake.parts, agent);
  const adopts = session === undefined ? null : await readAdopted(intake, owner, conversation, session, agent);
  return adopts === null ? turn : { ...turn, adopts };
}

/**
 * Reads the history of the session that a turn names, if the conversation has not used that session yet. This happens before the turn is
 * stored, because the turns of that session get the numbers before it. Null: there is nothing to read, or it cannot be read. Then the
 * turn is stored alone. When it runs, the session is refused with the reason, or what was said in it before stays unknown.
 */
async function readAdopted(
  { parts, worker }: Intake,
  owner: string,
  { id: ours, sandbox: place, cwd, isNew }: ConversationOfTurn,
  id: string,
  agent: Agent,
): Promise<AdoptedSession | null> {
  const { store, sandboxes } = parts;
  const readHistory = agent.history?.bind(agent);
  if (readHistory === undefined) return null;
  const all = await store.findSessions(owner, id);
  const known = all.filter((session) => session.agent === agent.name);
  // The conversation has used it. Or the conversation is new, and another one uses it: then the store refuses the turn.
  if (known.some((session) => session.conversation === ours || (isNew && isUsable(session)))) return null;
  const sandbox = { ...(await sandboxes.open(place, { cwd })), owner };
  const storage = await storageOf(agent, sandbox);
  for (const session of all.filter(({ conversation }) => conversation === ours)) {
    const other = parts.agents.get(session.agent)?.agent;
    if (other !== undefined && (await storageOf(other, sandbox)) === storage) throw usedAlready(id, other.name);
  }
  if (!isNew && (await store.sessionIsElsewhere(owner, ours, { storage, id }))) return null;
  const { shutdown } = worker;
  const history = await askedStarts.run(shutdown, () => readHistory(id, sandbox, shutdown));
  if (history === null || (history.turns.length === 0 && history.unknownBefore)) return null;
  return { ref: randomUUID(), id, agent: agent.name, storage, history };
}

async function storageOf(agent: Agent, sandbox: OpenSandbox): Promise<string> {
  return (await agent.storage?.(sandbox)) ?? agent.name;
}

/** Its turns are in the history already, and two agents would continue in one session. */
function usedAlready(id: string, agent: string): ThroughlineError {
  return new ThroughlineError('refused', `The conversation has used the session "${id}" with the agent "${agent}".`, {
    hint: 'Name that agent, or leave out the session: then this agent is told what was said in it.',
  });
}

/** Throws `refused` if the agent takes no id for a new session. The store checks whether the id is free. */
async function checkTakesId({ sandboxes }: EngineParts, agent: Agent): Promise<void> {
  await using sandbox = await sandboxes.probe();
  const traits = await agent.traits(sandbox);
  if (traits.id === 'assigned') return;
  throw issuesIds(agent.name);
}

function turnOptions(options: SubmitOptions): TurnOptions {
  const { session, newSession, restore, permissions, limits, deliverTo } = options;
  if (deliverTo !== undefined) checkText(deliverTo, 'deliverTo (--deliver-to)');
  for (const id of [session, newSession]) if (id !== undefined) checkText(id, 'session id');
  if (session !== undefined && newSession !== undefined) {
    throw new ThroughlineError('invalid', 'A turn either continues in a session or opens a new one, not both.', {
      hint: '"session" (--session) names an existing session, "newSession" (--new-session) is the id for a new one.',
    });
  }
  if (permissions !== undefined && !isPermissionMode(permissions)) {
    throw new ThroughlineError('invalid', 'permissions must be "ask" or "deny".');
  }
  const parsed = restore === undefined ? undefined : parseTurnRestore(restore);
  checkSession(options, parsed);
  const times = limits === undefined ? undefined : parseTimes(limits);
  const set = given({ session, newSession, restore: parsed, permissions, limits: times, deliverTo });
  return { ...set, ...parseChoices(options) };
}

/** What a turn says about its session must not contradict how it is restored. */
function checkSession({ session, newSession }: SubmitOptions, restore: TurnRestore = {}): void {
  if (session !== undefined && restore.policy === 'off') {
    throw new ThroughlineError(
      'invalid',
      'A turn that names a session continues in it. The policy "off" always starts a fresh one.',
      {
        hint: 'Leave one of them out.',
      },
    );
  }
  if (session !== undefined && (restore.rung || restore.rebuild)) {
    const what = restore.rung ? 'names either its session or its rung' : 'either names its session or rebuilds it';
    throw new ThroughlineError('invalid', `A turn ${what}, not both.`, {
      hint: 'A named session is always resumed; leave out "rung" and "rebuild".',
    });
  }
  if (newSession !== undefined && restore.rung && continues(restore.rung)) {
    const message = `A turn opens a new session, or continues in the present one ("rung": "${restore.rung}"), not both.`;
    throw new ThroughlineError('invalid', message, { hint: 'Leave one of them out.' });
  }
}
