import type { Conversation, ConversationEvent, ThroughlineClient } from 'throughline/client';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { retryUpdate } from '../../../../src/core/turn/update.ts';
import type { Follower, Live } from '../../live/live.ts';
import { ConversationStore } from './store.ts';

beforeAll(() => {
  vi.stubGlobal('requestAnimationFrame', (work: () => void) => setTimeout(work, 0));
  vi.stubGlobal('cancelAnimationFrame', (timer: number) => clearTimeout(timer));
});
afterAll(() => void vi.unstubAllGlobals());

const CONVERSATION = { id: 'c', lastSeq: 4, logId: 'log' };
const ASKED = { conversationId: 'c', seq: 5, kind: 'permission.asked', turnId: null, at: 1, payload: {} };

/** A server that can be unreachable, and what the store has requested from the stream. */
class Server {
  isGone = false;
  questions: object[] = [];
  turn: object | null = null;
  follower: Follower | null = null;
  followed: object | null = null;
  readonly listeners = new Set<(state: { state: string }) => void>();

  readonly #none = async () => [];
  readonly tl = {
    engine: {
      conversation: async () => CONVERSATION,
      outline: this.#none,
      turns: this.#none,
      records: this.#none,
      restores: this.#none,
      sessions: this.#none,
      turn: async () => this.turn,
      permissions: async () => {
        if (this.isGone) throw new Error('gone');
        return this.questions;
      },
    },
  } as unknown as ThroughlineClient;

  readonly live = {
    follow: (_: string, from: object, follower: Follower) => {
      [this.followed, this.follower] = [from, follower];
      return () => {};
    },
    onState: (listener: (state: { state: string }) => void) => {
      this.listeners.add(listener);
      return () => this.listeners.delete(listener);
    },
  } as unknown as Live;
}

test('data that could not be read while the server was unreachable is read when it is back', async () => {
  const server = new Server();
  const store = new ConversationStore(server.tl, server.live, 'c');
  await store.open();
  expect(store.state.getState()).toMatchObject({ phase: 'ready', permissions: [] });
  server.isGone = true;
  server.questions = [{ id: 'p' }];
  server.follower?.onEvent(ASKED as ConversationEvent);
  await expect.poll(() => store.state.getState().error).toEqual(new Error('gone'));
  server.isGone = false;
  for (const listener of server.listeners) listener({ state: 'open' });
  await expect.poll(() => store.state.getState().permissions).toEqual([{ id: 'p' }]);
  store.close();
  expect(server.listeners.size).toBe(0);
});

test('the output of a turn before it was loaded is shown, also if no more output follows', async () => {
  const server = new Server();
  const store = new ConversationStore(server.tl, server.live, 'c');
  await store.open();
  server.turn = { id: 't', n: 1, state: 'running', sent: {} };
  const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'Here.' } };
  const events = [
    { kind: 'turn.queued', payload: {} },
    { kind: 'turn.started', payload: { attempt: 1 } },
    { kind: 'turn.update', payload: { update } },
  ].map((event, index) => ({ conversationId: 'c', seq: 5 + index, turnId: 't', at: 1, ...event }));
  for (const event of events) server.follower?.onEvent(event as ConversationEvent);
  await expect.poll(() => store.state.getState().turns.get(1)?.parts).toMatchObject([{ type: 'text', text: 'Here.' }]);
  store.close();
});

test('the progress of a restore is shown, also when it began before the turn was loaded, and no more events follow', async () => {
  const server = new Server();
  const store = new ConversationStore(server.tl, server.live, 'c');
  await store.open();
  server.turn = { id: 't', n: 1, state: 'queued', sent: null }; // its state at the time of the request
  const events = [
    { kind: 'turn.queued', payload: {} },
    { kind: 'turn.started', payload: { attempt: 1 } },
    { kind: 'event.unknown', payload: { kind: 'turn.reviewed' } }, // of a newer version: ignored
    { kind: 'restore.started', payload: { rung: 'replay', total: 3 } },
    { kind: 'restore.progress', payload: { rung: 'replay', done: 1, total: 3 } },
  ].map((event, index) => ({ conversationId: 'c', seq: 5 + index, turnId: 't', at: 1, ...event }));
  for (const event of events) server.follower?.onEvent(event as ConversationEvent);
  await expect
    .poll(() => store.state.getState().turns.get(1))
    .toMatchObject({ turn: { state: 'running' }, restoring: { done: 1, total: 3 } });
  store.close();
});

test('that the API of the model does not answer is shown until something of an answer comes', async () => {
  const server = new Server();
  const store = new ConversationStore(server.tl, server.live, 'c');
  await store.open();
  server.turn = { id: 't', n: 1, state: 'running', sent: {} };
  const notice = () => store.state.getState().turns.get(1)?.notice;
  let seq = 4;
  const see = (kind: string, payload: object) => {
    seq += 1;
    server.follower?.onEvent({ conversationId: 'c', seq, turnId: 't', at: 1, kind, payload } as ConversationEvent);
  };
  const retry = { attempt: 4, of: 10, inMs: 35_000, status: 529, reason: 'overloaded' };
  see('turn.queued', {});
  see('turn.started', { attempt: 1 });
  see('turn.update', { update: retryUpdate(retry) });
  see('turn.update', { update: { sessionUpdate: 'session_info_update', title: 'A title' } });
  await expect.poll(notice).toMatchObject({ kind: 'unanswered', retry });
  see('turn.update', { update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'Here.' } } });
  await expect.poll(notice).toBeNull();
  // In a replay the answers are not shown, only that it goes on.
  see('turn.update', { update: retryUpdate(retry) });
  await expect.poll(notice).toMatchObject({ kind: 'unanswered', retry });
  see('restore.progress', { rung: 'replay', done: 1, total: 3 });
  await expect.poll(notice).toBeNull();
  store.close();
});

test('events are followed from before the end was read, so that none is missing', async () => {
  const server = new Server();
  const store = new ConversationStore(server.tl, server.live, 'c');
  await store.open({ ...CONVERSATION, lastSeq: 2 } as Conversation);
  expect(server.followed).toEqual({ after: 2, log: 'log' });
  expect(store.state.getState()).toMatchObject({ phase: 'ready', conversation: { lastSeq: 4 } });
});

test('a known conversation of another log is not followed', async () => {
  const server = new Server();
  const store = new ConversationStore(server.tl, server.live, 'c');
  await store.open({ ...CONVERSATION, lastSeq: 9, logId: 'another' } as Conversation);
  expect(server.followed).toEqual({ after: 4, log: 'log' });
});
