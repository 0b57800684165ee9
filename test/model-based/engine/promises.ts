import { isUsable } from '../../../src/core/restore/session.ts';
import { promptText } from '../../../src/core/turn/content.ts';
import type { TurnRecord } from '../../../src/core/turn/record.ts';
import { hasEnded, type Turn } from '../../../src/core/turn/turn.ts';
import { promptedBy } from './agent-double.ts';
import { PROFILES } from './profiles.ts';
import type { Delivery } from './witness.ts';
import type { World } from './world.ts';

const ALL = { after: 0, limit: 1_000 };

/** What must hold at the end, whatever happened before. */
export async function checkPromises(world: World): Promise<void> {
  for (const id of world.conversations) {
    const { store, owner } = world;
    const turns = await store.turns(owner, id, ALL);
    const history = await store.recordsAfter(owner, id, ALL);
    await everyTurnEndedOnce(world, id, turns);
    for (const turn of turns) {
      const deliveries = world.witness.deliveries.filter((one) => one.turn === turn.id);
      nothingSentTwice(turn, deliveries);
      nothingToldTwice(world, turn, deliveries);
      for (const delivery of deliveries) await hadTheContext(world, turn, history, delivery);
      await everySentTurnHasAReceipt(world, turn);
    }
    await noWatermarkOverstates(world, id, history);
    for (const record of history) answersItsOwnPrompt(record);
  }
}

/** R4, R5. */
async function everyTurnEndedOnce({ store, owner }: World, id: string, turns: readonly Turn[]): Promise<void> {
  const events = await store.events(owner, id, ALL);
  for (const [i, event] of events.entries())
    if (event.seq !== i + 1) throw new Error(`event ${i + 1} has number ${event.seq}`);
  for (const turn of turns) {
    const count = (kind: string) => events.filter((event) => event.kind === kind && event.turn === turn.id).length;
    if (!hasEnded(turn.state)) throw new Error(`turn ${turn.n} is ${turn.state}`);
    if (count('turn.ended') !== count('turn.queued'))
      throw new Error(`turn ${turn.n} ended ${count('turn.ended')} times`);
  }
  if ((await store.verify(owner, id)).broken !== null) throw new Error('the chain is broken');
}

/** R6: a turn is sent again only after a failure that was read to its end and in which no tool had begun. */
function nothingSentTwice(turn: Turn, deliveries: readonly Delivery[]): void {
  for (const earlier of deliveries.slice(0, -1)) {
    if (earlier.tool) throw new Error(`turn ${turn.n} was sent again after it had run a tool`);
    if (earlier.result !== 'failed' && !earlier.refuted && !earlier.moved) {
      throw new Error(`turn ${turn.n} was sent again after an attempt that ended as ${earlier.result}`);
    }
  }
  if (deliveries.filter((one) => one.tool).length > 1) throw new Error(`turn ${turn.n} ran its tool twice`);
  const last = deliveries.at(-1);
  if (turn.state === 'completed' && last?.refuted) throw new Error(`turn ${turn.n} completed without the context`);
}

/** A failed prompt is not in the context of the next attempt, if the agent can rewind. */
function nothingToldTwice({ setup }: World, turn: Turn, deliveries: readonly Delivery[]): void {
  for (const [i, { agent, context, attempt }] of deliveries.entries()) {
    if (!PROFILES[setup[agent as 'a' | 'b']].traits.rewind) continue;
    if (deliveries.slice(0, i).some(({ id }) => context.includes(promptedBy(id))))
      throw new Error(`turn ${turn.n} was told twice: attempt ${attempt} had the prompt of an earlier one before it`);
  }
}

/**
 * The central promise: a prompt reaches a session only together with the whole history, except what its receipt reports as dropped or
 * condensed. R7, R10: it reaches the session that the caller named, and none that somebody else has used.
 */
async function hadTheContext(
  { store, owner, setup }: World,
  turn: Turn,
  history: readonly TurnRecord[],
  delivery: Delivery,
): Promise<void> {
  const receipts = await store.receipts(owner, turn.conversation, { turn: turn.n });
  const receipt = receipts.find((one) => one.attempt === delivery.attempt);
  if (receipt === undefined) throw new Error(`turn ${turn.n}, attempt ${delivery.attempt}, was sent without a receipt`);
  const { traits, rotates } = PROFILES[setup[delivery.agent as 'a' | 'b']];
  if (delivery.foreign && traits.position)
    throw new Error(`turn ${turn.n} was sent to a session that somebody else used`);
  if (delivery.refuted || receipt.proof === 'none') return;
  // The engine has stopped it for that, and does not use its answer.
  if (delivery.moved && !(turn.state === 'completed' && delivery.attempt === turn.attempt)) return;
  const lacking = history
    .filter((record) => record.n < turn.n && !holds(delivery.context, record))
    .map((record) => record.n);
  if (lacking.length > receipt.dropped + receipt.condensed) {
    const said = `${receipt.rung}, dropped ${receipt.dropped}, condensed ${receipt.condensed}, proof ${receipt.proof}`;
    throw new Error(`turn ${turn.n} was sent to ${delivery.session} without turns ${lacking.join(', ')} (${said})`);
  }
  const before = history.filter((record) => record.n < turn.n).length;
  const { carried, condensed, dropped } = receipt;
  if (carried + condensed + dropped !== before) {
    throw new Error(`the receipt of turn ${turn.n} counts ${carried} + ${condensed} + ${dropped}, not ${before} turns`);
  }
  const named = turn.options.session;
  if (named !== undefined && rotates === 'never' && delivery.session !== named) {
    throw new Error(`turn ${turn.n} named the session ${named} and was sent to ${delivery.session}`);
  }
}

/** Whether the context has the prompt of an earlier turn, and an answer if it had one. (A replay has another answer.) */
function holds(context: string, record: TurnRecord): boolean {
  const [word = ''] = promptText(record.prompt).split(' ');
  return context.includes(word) && (record.outcome !== 'completed' || context.includes(`reply-to-${word}`));
}

async function everySentTurnHasAReceipt({ store, owner }: World, turn: Turn): Promise<void> {
  const sent = (await store.turnEvents(owner, turn.id)).filter((event) => event.kind === 'turn.sent');
  const receipts = await store.receipts(owner, turn.conversation, { turn: turn.n });
  for (const { payload } of sent) {
    const { attempt } = payload.sent;
    if (!receipts.some((receipt) => receipt.attempt === attempt)) throw new Error(`turn ${turn.n} has no receipt`);
  }
}

/** A record has no answer to the prompt of another turn or another conversation. */
function answersItsOwnPrompt(record: TurnRecord): void {
  const [word = ''] = promptText(record.prompt).split(' ');
  for (const [, to] of JSON.stringify(record.parts).matchAll(/reply-to-(\S+?\.)/g)) {
    if (to !== word) throw new Error(`the record of turn ${record.n} has an answer to ${to}`);
  }
}

/** What all processes of the session got, and what they answered. */
function allToldTo({ witness }: World, session: string): string {
  const here = witness.deliveries.filter((one) => one.session === session);
  return here
    .map(({ context, result, reply }) => (result === 'completed' ? `${context}\n${reply}` : context))
    .join('\n');
}

/** R9: a session has every turn up to its watermark, except those that are recorded as dropped. */
async function noWatermarkOverstates(world: World, id: string, history: readonly TurnRecord[]): Promise<void> {
  const { store, owner, storages, setup, touched } = world;
  const receipts = await store.receipts(owner, id);
  for (const session of await store.sessions(owner, id)) {
    const storage = storages[session.agent as 'a' | 'b'];
    const entries = storage.sessions.get(session.id);
    if (!isUsable(session) || entries === undefined || touched.has(session.id)) continue;
    const { forgets, traits } = PROFILES[setup[session.agent as 'a' | 'b']];
    const { position } = traits;
    // With the policy "auto" it is used nevertheless, and its receipt says so.
    if (forgets && receipts.some((one) => one.sessionId === session.id && one.proof === 'none')) continue;
    if (position && storage.position(session.id) !== session.position) continue;
    // If the agent's storage cannot be read, and its receipts say so, what the session was given counts.
    const context = storage.beyondKnowing.has(session.id) ? allToldTo(world, session.id) : entries.join('\n');
    const lacking = history.filter((record) => record.n <= session.watermark && !holds(context, record));
    if (lacking.length > session.dropped) {
      const turns = lacking.map((record) => record.n).join(', ');
      throw new Error(`${session.id} has the watermark ${session.watermark} and lacks the turns ${turns}`);
    }
  }
}
