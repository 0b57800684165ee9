import { hasEnded } from '../../../src/core/turn/turn.ts';
import type { ConversationFacts, TurnFact } from './facts.ts';
import { codewordsIn } from './prompts.ts';

/*
 * What must hold for every conversation, whatever was killed at which time. Each check returns the faults that it found, in words. They are
 * functions of plain facts, so that checks.test.ts can show that each of them can fail.
 */

/** R3: every acknowledged request is one turn, with the acknowledged id and number. */
export function nothingLost(
  facts: ConversationFacts,
  accepted: readonly { readonly name: string; readonly turn: string; readonly n: number }[],
): string[] {
  const faults = accepted.flatMap(({ name, turn, n }) => {
    const found = facts.turns.filter((candidate) => candidate.requestId === name);
    if (found.length !== 1) return [`${name} was accepted, and there are ${found.length} turns of it`];
    return found[0]?.id === turn && found[0].n === n ? [] : [`${name} was accepted as another turn`];
  });
  const strange = facts.turns.filter(({ requestId }) => !accepted.some(({ name }) => name === requestId));
  return [...faults, ...strange.map(({ n }) => `${facts.key}: nobody submitted turn ${n}`)];
}

/** R4: every turn has one end, in the table and among the events. */
export function oneEnd({ key, events, turns, pending }: ConversationFacts): string[] {
  const faults = turns.flatMap(({ n, state }) => {
    const count = events.filter((event) => event.kind === 'turn.ended' && event.n === n).length;
    if (!hasEnded(state)) return [`${key}: turn ${n} is still ${state}`];
    return count === 1 ? [] : [`${key}: turn ${n} has ${count} ends`];
  });
  return pending === 0 ? faults : [...faults, `${key}: ${pending} turns are pending`];
}

/** R2: turns run one at a time, in the order of their numbers, and are sent once, unless an event says that the attempt is retried. */
export function inOrder({ key, events }: ConversationFacts): string[] {
  const faults: string[] = [];
  let open: number | null = null;
  let sent = false;
  let ended = 0;
  for (const { kind, n, seq } of events) {
    const fault = (what: string) => faults.push(`${key}: at ${seq}, turn ${n} ${what}`);
    if (kind === 'turn.started') {
      if (open !== null) fault(`was started while turn ${open} was open`);
      if (n !== ended + 1) fault(`was started after turn ${ended}`);
      open = n;
      sent = false;
    } else if (kind === 'turn.sent') {
      if (open !== n) fault('was sent and is not the open one');
      if (sent) fault('was sent twice');
      sent = true;
    } else if (kind === 'turn.retrying') sent = false;
    else if (kind === 'turn.requeued') {
      if (sent) fault('was queued again although it was sent');
      open = null;
    } else if (kind === 'turn.ended') {
      if (open !== n) fault('ended and is not the open one');
      open = null;
      ended = n ?? ended;
    }
  }
  return faults;
}

/** R5: events are numbered from 1 without gaps. R2: no epoch writes after a newer one. */
export function gapless({ key, events }: ConversationFacts): string[] {
  const gaps = events.flatMap(({ seq }, i) => (seq === i + 1 ? [] : [`${key}: event ${i + 1} has the number ${seq}`]));
  let newest = 0;
  const stale = events.flatMap(({ seq, epoch }) => {
    if (epoch === null || epoch >= newest) {
      newest = epoch ?? newest;
      return [];
    }
    return [`${key}: event ${seq} was written under the epoch ${epoch} after ${newest}`];
  });
  return [...gaps, ...stale];
}

/** R5: a reader saw every event once and in order, however often it was killed. */
export function sawAll({ key, events }: ConversationFacts, reader: string, seen: readonly number[]): string[] {
  const wrong = seen.findIndex((seq, i) => seq !== i + 1);
  if (wrong !== -1) return [`${reader} saw ${key}/${seen[wrong]} where ${wrong + 1} was due`];
  return seen.length === events.length ? [] : [`${reader} saw ${seen.length} of ${events.length} events of ${key}`];
}

/** R6: no tool ran twice, the tool of a completed turn ran, no denied tool ran, and tools ran in the order of the turns. */
export function ranOnce({ key, turns, ran }: ConversationFacts): string[] {
  const faults = turns.flatMap((turn) => {
    const count = ran.filter((name) => name === turn.requestId).length;
    if (count > 1) return [`${key}: the tool of turn ${turn.n} (${turn.state}) ran ${count} times`];
    if (turn.state === 'completed' && count === 0) return [`${key}: turn ${turn.n} completed without its tool`];
    return count === 1 && turn.record === null ? [`${key}: turn ${turn.n} was never sent, and its tool ran`] : [];
  });
  const numbers = ran.map((name) => turns.find(({ requestId }) => requestId === name)?.n);
  const disorder = numbers.flatMap((n, i) => {
    if (n === undefined) return [`${key}: "${ran[i]}" ran, which is the tool of no turn`];
    return i > 0 && n < (numbers[i - 1] ?? 0) ? [`${key}: the tool of turn ${n} ran after a later one`] : [];
  });
  return [...faults, ...disorder];
}

/** R9: an answer has everything of the history except what its receipt says was dropped, and nothing else. */
export function knewAll({ key, turns, head, watermarks }: ConversationFacts): string[] {
  const history: TurnFact[] = [];
  const faults = turns.flatMap((turn) => {
    const before = history.map(({ requestId }) => requestId ?? '');
    if (turn.record !== null) history.push(turn);
    if (turn.state !== 'completed') return [];
    const known = codewordsIn(turn.record?.reply ?? '');
    const missing = before.filter((word) => !known.includes(word));
    const untold = missing.length > turn.dropped ? missing : [];
    if (!known.includes(turn.requestId ?? '')) untold.push(turn.requestId ?? '');
    const foreign = known.filter((word) => !before.includes(word) && word !== turn.requestId);
    return [
      ...untold.map((word) => `${key}: turn ${turn.n} did not know ${word}, and no receipt says so`),
      ...foreign.map((word) => `${key}: turn ${turn.n} knew ${word}, which is not of its history`),
    ];
  });
  const beyond = watermarks.filter((watermark) => watermark > head);
  return [...faults, ...beyond.map((watermark) => `${key}: a watermark of ${watermark} is beyond the head ${head}`)];
}

/** A kill interrupts a turn and never makes it fail. A turn fails only when its agent dies while it is opened or gets the prompt. */
export function failedHarmlessly({ key, turns, events, ran }: ConversationFacts): string[] {
  return turns.flatMap(({ n, state, failure, record, requestId }) => {
    if (state !== 'failed') return [];
    const code = failure === null ? 'nothing' : (JSON.parse(failure) as { code: string }).code;
    const triedAgain = events.some((event) => event.kind === 'turn.retrying' && event.n === n);
    const unopened = code === 'agent_unavailable' && record === null;
    const twiceDead = code === 'agent_failed' && triedAgain;
    const harmless = (unopened || twiceDead) && !ran.includes(requestId ?? '');
    return harmless ? [] : [`${key}: turn ${n} failed with ${code}`];
  });
}
