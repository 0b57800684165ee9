import { expect, test } from 'vitest';
import { ThroughlineError } from '../../../core/errors.ts';
import type { PublicConversation } from '../../../core/public/conversation.ts';
import type { PublicEvent } from '../../../core/public/event.ts';
import type { Engine } from '../../../ports/engine.ts';
import type { ChatDesk } from '../cli.ts';
import { Talk } from './talk.ts';

const CONVERSATION = { id: 'c', key: 'notes', head: 0, lastSeq: 0, logId: 'log', open: 0 } as PublicConversation;
const away = () => new ThroughlineError('unreachable', 'The server does not answer.');

/** A server that sends these events after the requested one, and is then controlled by the test. */
function desk(
  events: readonly number[],
  then: 'waits' | 'dies',
  served = true,
): ChatDesk & { readonly submitted: unknown[] } {
  const submitted: unknown[] = [];
  const engine = {
    owner: 'local',
    conversation: async () => CONVERSATION,
    async submit(...args: unknown[]) {
      if (then === 'dies') throw away();
      submitted.push(args);
      return { turn: { conversationId: CONVERSATION.id }, seq: 2 };
    },
    async *follow(_: string, { after = 0, signal }: { after?: number; signal?: AbortSignal }) {
      for (const seq of events.filter((one) => one > after)) yield { seq, kind: 'turn.sent', turnId: 't' };
      if (then === 'dies') throw away();
      await new Promise((resolve) => signal?.addEventListener('abort', resolve));
    },
    close: async () => {},
  };
  return { engine: engine as unknown as Engine, served, home: '/', submitted };
}

async function talkWith(...desks: (ChatDesk | ThroughlineError)[]) {
  const seen: number[] = [];
  const said: (string | null)[] = [];
  const talk = await Talk.open(
    async () => {
      const next = desks.shift();
      if (next === undefined || next instanceof ThroughlineError) throw next ?? away();
      return next;
    },
    {
      event: ({ seq }: PublicEvent) => seen.push(seq),
      note: (text) => said.push(text),
      trouble: (what) => said.push(what),
      failed: (error) => said.push(String(error)),
    },
  );
  return { talk, seen, said };
}

test('after the server was away for long, events continue after the last one, and a prompt is sent with the same id', async () => {
  const second = desk([1, 2, 3, 4], 'waits');
  const { talk, seen, said } = await talkWith(desk([1, 2], 'dies'), away(), second);
  await talk.enter(CONVERSATION);
  await talk.submit('Hello', { requestId: 'r' });
  await expect.poll(() => seen).toEqual([1, 2, 3, 4]);
  expect(second.submitted).toEqual([['c', 'Hello', { requestId: 'r' }]]);
  expect(said.filter((one) => one === 'Connected again.')).toHaveLength(1);
  expect(said.at(-2)).toBeNull();
  await talk.close();
});

test('the first prompt of a new key creates its conversation, also when the server is away at first', async () => {
  const second = desk([1, 2, 3], 'waits');
  const { talk, seen } = await talkWith(desk([], 'dies'), away(), second);
  talk.begin({ key: 'notes', cwd: '/work' });
  await talk.submit('Hello', { requestId: 'r' });
  expect(second.submitted).toEqual([['notes', 'Hello', { requestId: 'r', create: { cwd: '/work' } }]]);
  // From the event of the turn on: the conversation was created just before it.
  await expect.poll(() => seen).toEqual([2, 3]);
  await talk.close();
});

test('when no server answers any more, this process continues, and reports it', async () => {
  const { talk, said, seen } = await talkWith(desk([1], 'dies'), desk([1, 2], 'waits', false));
  await talk.enter(CONVERSATION);
  await expect.poll(() => seen).toEqual([1, 2]);
  expect(said).toContain('No server answers. This process continues the conversation itself.');
  expect(talk.served).toBe(false);
  await talk.close();
});

test('a prompt that waits for the server goes to the conversation in which it was given', async () => {
  const second = desk([], 'waits');
  const { talk } = await talkWith(desk([], 'dies'), away(), second);
  await talk.enter(CONVERSATION);
  const sent = talk.submit('For the first one', { requestId: 'r' });
  await talk.enter({ ...CONVERSATION, id: 'other', key: 'other' });
  expect(talk.unsent).toEqual(['For the first one']);
  await sent;
  expect(second.submitted).toEqual([['c', 'For the first one', { requestId: 'r' }]]);
  expect([talk.unsent, talk.name]).toEqual([[], 'other']);
  await talk.close();
});

test('a turn that began long ago is shown, and the missing beginning of its answer is reported', async () => {
  const events: PublicEvent[] = [];
  const notes: string[] = [];
  const engine = {
    turns: async () => [
      { id: 't', conversationId: 'c', n: 4, agent: 'a', prompt: [{ type: 'text', text: 'Work' }], state: 'running' },
    ],
    async *follow(_: string, { after = 0 }: { after?: number }) {
      for (const seq of [after + 1, after + 2]) yield { seq, kind: 'turn.update', turnId: 't' };
    },
    close: async () => {},
  } as unknown as Engine;
  const ignore = () => {};
  const talk = await Talk.open(async () => ({ engine, served: true, home: '/' }), {
    event: (event) => events.push(event),
    note: (text) => notes.push(text),
    trouble: ignore,
    failed: ignore,
  });
  await talk.enter({ ...CONVERSATION, head: 3, lastSeq: 90_000, open: 1 });
  await expect.poll(() => events.length).toBe(4);
  expect(events.map(({ kind }) => kind)).toEqual(['turn.queued', 'turn.started', 'turn.update', 'turn.update']);
  expect(events[0]?.payload).toMatchObject({ n: 4, agent: 'a', preview: 'Work' });
  expect(notes).toEqual(['The beginning of this answer is not shown here.']);
  await talk.close();
});
