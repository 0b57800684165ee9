import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { LOG_HEADER } from '../../../wire/operations/operation.ts';
import { PROBLEM_EVENT } from '../../../wire/problem-codes.ts';
import { createBackoff } from './backoff.ts';
import type { Connection, Request, Stop } from './connection.ts';
import { errorIn, ServerAway } from './faults.ts';
import type { Incoming } from './transport.ts';

/** Yielded after a reconnect: messages without a number may have been missed. */
export const RECONNECTED = Symbol('reconnected');

/**
 * The messages of a stream, over as many connections as needed. Each connection begins after the last message that was taken,
 * so none is lost and none comes twice. Reads only as fast as the caller does. Ends when the signal aborts.
 */
export async function* messages(
  connection: Connection,
  request: Request,
  signal: AbortSignal | undefined,
): AsyncGenerator<EventSourceMessage | typeof RECONNECTED> {
  const backoff = createBackoff(connection.transport.where, connection.timing);
  let lastId: string | undefined;
  let log: string | null = null;
  let isReconnect = false;
  while (!signal?.aborted) {
    const stop = connection.begin(signal);
    let why = new ServerAway('the stream ended', { nothingDone: true });
    try {
      const headers = lastId === undefined ? request.headers : { ...request.headers, 'last-event-id': lastId };
      connection.limitAnswer(stop, request, backoff);
      const answer = await connection.send({ ...request, path: withLog(request.path, log), headers }, stop);
      log ??= answer.header(LOG_HEADER);
      backoff.answered();
      if (isReconnect) yield RECONNECTED;
      isReconnect = true;
      const { silenceMs } = connection.timing;
      const onRetry = (ms: number) => backoff.limit(ms);
      for await (const message of messagesOf(answer, connection, stop, { silenceMs: () => silenceMs, onRetry })) {
        backoff.reset();
        if (message.event === PROBLEM_EVENT) throw errorIn(message.data);
        lastId = message.id ?? lastId;
        yield message;
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (!(error instanceof ServerAway)) throw error;
      why = error;
    } finally {
      stop.abort(); // the caller may have left before the end
      connection.end(stop);
    }
    await connection.wait(backoff, why, signal);
  }
}

/** Adds the log that the numbers belong to. The server then reports when it has another log, so that no event is missed unnoticed. */
function withLog(path: string, log: string | null): string {
  if (log === null || /[?&]log=/.test(path)) return path;
  return `${path}${path.includes('?') ? '&' : '?'}log=${encodeURIComponent(log)}`;
}

interface Reading {
  /** A connection without even a heartbeat for so long is dead. */
  readonly silenceMs: () => number;
  /** The server asks for this pause before a reconnect. */
  readonly onRetry: (ms: number) => void;
  /** Called for all data, also for a heartbeat. */
  readonly onChunk?: () => void;
}

/** Messages of one connection. An incomplete message is dropped. */
export async function* messagesOf(
  answer: Incoming,
  connection: Connection,
  stop: Stop,
  { silenceMs, onRetry, onChunk }: Reading,
): AsyncGenerator<EventSourceMessage> {
  const waiting: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (message) => waiting.push(message), onRetry });
  const decoder = new TextDecoder();
  const chunks = answer.chunks()[Symbol.asyncIterator]();
  try {
    for (;;) {
      // Only while we wait for the server: the caller may take any time.
      stop.limit(silenceMs(), 'it sent nothing for too long');
      const { done, value } = await connection.orAway(stop, () => chunks.next());
      stop.noLimit();
      if (done) return;
      onChunk?.();
      parser.feed(decoder.decode(value, { stream: true }));
      yield* waiting.splice(0);
    }
  } finally {
    // Otherwise the unread answer would cause an unhandled error when the request is aborted.
    await chunks.return?.();
  }
}
