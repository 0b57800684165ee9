import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { Absence } from './absence.ts';
import type { Connection, Request } from './connection.ts';
import { Away } from './faults.ts';
import type { Stop } from './stop.ts';
import type { Incoming } from './transport.ts';

/** Said in between when the connection was lost: messages without a number may have been missed. */
export const AGAIN = Symbol('again');

/**
 * Messages of a stream, through as many connections as it takes: each begins after the last message that was taken, so none
 * is lost and none comes twice. What is not taken is not read either: a slow taker costs one chunk. Ends when the signal aborts.
 */
export async function* messages(
  connection: Connection,
  request: Request,
  signal: AbortSignal | undefined,
): AsyncGenerator<EventSourceMessage | typeof AGAIN> {
  const absence = new Absence(connection.transport.where, connection.timing);
  let lastId: string | undefined;
  let before = false;
  while (!signal?.aborted) {
    const stop = connection.begin(signal);
    let why = new Away('the stream has ended', { undone: true });
    try {
      const headers = lastId === undefined ? request.headers : { ...request.headers, 'last-event-id': lastId };
      stop.within(connection.timing.timeoutMs, 'it takes too long');
      const answer = await connection.send({ ...request, headers }, stop);
      absence.alive();
      if (before) yield AGAIN;
      before = true;
      for await (const message of messagesOf(answer, connection, stop, (ms) => absence.atMost(ms))) {
        absence.over();
        lastId = message.id ?? lastId;
        yield message;
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (!(error instanceof Away)) throw error;
      why = error;
    } finally {
      stop.abort(); // whoever left early has left the rest unread
      connection.end(stop);
    }
    await connection.wait(absence, why, signal);
  }
}

/** Messages of one connection. A message that was cut off is none. */
async function* messagesOf(
  answer: Incoming,
  connection: Connection,
  stop: Stop,
  onRetry: (ms: number) => void,
): AsyncGenerator<EventSourceMessage> {
  const waiting: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (message) => waiting.push(message), onRetry });
  const decoder = new TextDecoder();
  const chunks = answer.chunks()[Symbol.asyncIterator]();
  for (;;) {
    // Only while we listen: how long our taker takes is nobody's fault.
    stop.within(connection.timing.silenceMs, 'it has fallen silent');
    const { done, value } = await connection.orAway(stop, () => chunks.next());
    stop.atLeisure();
    if (done) return;
    parser.feed(decoder.decode(value, { stream: true }));
    yield* waiting.splice(0);
  }
}
