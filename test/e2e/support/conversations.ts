import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { ErrorCode } from '../../../src/core/errors.ts';
import type { EventKind } from '../../../src/core/event.ts';
import type { PublicEvent } from '../../../src/core/public/event.ts';
import type { PublicTurn } from '../../../src/core/public/turn.ts';
import { hasEnded } from '../../../src/core/turn/turn.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import { until } from '../../contracts/agent-sandbox.ts';

export { effects, until } from '../../contracts/agent-sandbox.ts';

/** The scripted agent answers this with all codewords of the prompts that its session was given. */
export const WHICH_CODEWORDS = 'Which codewords have you seen?';

/** The codewords in an answer to that. */
export function codewordsIn(reply: string): string[] {
  const [, list] = /I have seen these codewords: (.*)\./.exec(reply) ?? [];
  return list === undefined ? [] : list.split(', ');
}

/** Waits until a turn has ended, by the events alone. */
export async function ended(engine: Engine, { id, conversationId }: PublicTurn): Promise<PublicTurn> {
  const turn = await engine.turn(id);
  if (hasEnded(turn.state)) return turn;
  for await (const event of engine.follow(conversationId)) {
    if (event.kind === 'turn.ended' && event.turnId === id) break;
  }
  return engine.turn(id);
}

/** Submits a prompt, waits until its turn has ended in any state, and returns the answer. */
export async function run(
  engine: Engine,
  conversation: string,
  prompt: string,
  options: Parameters<Engine['submit']>[2] = {},
) {
  const { turn } = await engine.submit(conversation, prompt, options);
  await ended(engine, turn);
  return engine.answerOf(turn.id);
}

/** The first event of this kind after a number. Waits for it if it is not there yet. */
export async function event<K extends EventKind>(
  engine: Engine,
  conversation: string,
  kind: K,
  options: { after?: number; turn?: string } = {},
): Promise<Extract<PublicEvent, { kind: K }>> {
  for await (const one of engine.follow(conversation, { after: options.after ?? 0 })) {
    if (one.kind !== kind || (options.turn !== undefined && one.turnId !== options.turn)) continue;
    return one as Extract<PublicEvent, { kind: K }>;
  }
  throw new Error(`no ${kind}`);
}

/** All events so far. */
export async function allEvents(engine: Engine, conversation: string): Promise<PublicEvent[]> {
  const { lastSeq } = await engine.conversation(conversation);
  const seen: PublicEvent[] = [];
  if (lastSeq === 0) return seen;
  for await (const one of engine.follow(conversation)) {
    seen.push(one);
    if (one.seq >= lastSeq) break;
  }
  return seen;
}

/** Whether an update of the agent that contains this text is stored. An update that is not stored is lost with a kill. */
export async function hasStoredUpdate(
  engine: Pick<Engine, 'events'>,
  conversation: string,
  text: string,
): Promise<boolean> {
  const events = await engine.events(conversation, { before: 'end', limit: 50 });
  return events.some(({ kind, payload }) => kind === 'turn.update' && JSON.stringify(payload).includes(text));
}

/** Expects that the promise fails with this code, and that its error matches `why`. */
export async function refusedWith(code: ErrorCode, promise: Promise<unknown>, why?: RegExp): Promise<void> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ code });
  if (why) expect(String(error)).toMatch(why);
}

/** Checks what holds for every conversation: event numbers without gaps, at most one end per turn, an intact hash chain. */
export async function expectSound(engine: Engine, conversation: string): Promise<void> {
  const events = await allEvents(engine, conversation);
  expect(events.map((one) => one.seq)).toEqual(events.map((_, i) => i + 1));
  const ends = events.filter((one) => one.kind === 'turn.ended').map((one) => one.turnId);
  expect(new Set(ends).size).toBe(ends.length);
  expect((await engine.verify(conversation)).broken).toBeNull();
}

/** Every directory below a path, relative to it. */
export function directoriesBelow(path: string): string[] {
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(path.length + 1));
}

/** Waits until no process holds the lock of the conversation. */
export function untilReleased(engine: Engine, conversation: string): Promise<void> {
  return until('the lock of the conversation is free', async () => (await engine.summary(conversation)).lock === null);
}
