// Two versions may write to one store. The older one reads events of kinds that it does not know.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { EventDraft } from '../../../src/core/event.ts';
import { toPublicTaskEvent } from '../../../src/core/public/task.ts';
import type { TaskEvent } from '../../../src/core/tasks/task.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { bootId, systemProcesses } from '../../../src/host/processes.ts';
import { open } from '../../../src/index.ts';
import { payloadWithoutWords } from '../../../src/stores/shared/tasks.ts';
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts';
import { CliHome, parseLines } from '../cli/process.ts';
import { expectValid } from './support/conform.ts';
import { serveProcess } from './support/served-process.ts';

/** Stores an event as a newer version would, with a payload that must not be published. Returns its number. */
async function storeNewer(home: CliHome, conversation: string): Promise<number> {
  const file = join(home.path, 'home', 'throughline.db');
  const store = await openSqliteStore({ file, clock: systemClock, boot: bootId() });
  try {
    const place = (await store.findConversation('local', conversation))?.place ?? '';
    const worker = { id: randomUUID(), process: systemProcesses.self() };
    const asked = { worker, place, agents: [], driver: 'worker', leaseMs: 10_000, conversation } as const;
    const claim = await store.claim(asked);
    if (claim === null) throw new Error('The conversation is held.');
    const event = { kind: 'turn.reviewed', turn: null, payload: { pid: 4711 } } as unknown as EventDraft;
    const committed = await store.commit(claim.fence, 1, [{ write: 'event', event }]);
    await store.release(claim.fence);
    return committed.seq;
  } finally {
    await store.close();
  }
}

test('an event of a newer version keeps its number for every reader, and the conversation continues', async () => {
  const home = new CliHome();
  onTestFinished(() => home.remove());
  await home.ok('send', 'chat', 'The codeword is amber.', '--agent', 'scripted');
  const [{ id }] = parseLines(await home.ok('list', '--json'));
  const seq = await storeNewer(home, id);
  const seen = { conversationId: id, seq, turnId: null, kind: 'event.unknown', payload: { kind: 'turn.reviewed' } };

  // Embedded: the command line.
  const lines = await home.ok('follow', 'chat', '--until-idle');
  expect(lines).toContain(`${seq}  turn.reviewed: an event of a newer version; update Throughline to see it`);
  const shown = parseLines(await home.ok('follow', 'chat', '--until-idle', '--json'));
  expect(shown.find((event) => event.seq === seq)).toMatchObject(seen);
  await home.ok('verify', 'chat');
  expect(await home.ok('show', 'chat')).toContain('amber');
  expect(await home.ok('export', 'chat', '--json')).toContain('amber');

  // Through a server: pages, server-sent events, the library, and the next turn.
  const { caller, url, token } = await serveProcess(home);
  const { turn } = await caller.ok('POST', '/conversations/chat/turns', { prompt: 'Which codewords have you seen?' });
  expect(JSON.stringify(await caller.finished(turn))).toContain('amber');
  const { events } = await caller.ok('GET', '/conversations/chat/log?before=end&limit=200');
  expect(events.find((event: { seq: number }) => event.seq === seq)).toMatchObject(seen);
  const numbers: number[] = [];
  for await (const { data } of caller.events('/conversations/chat/events?after=0')) {
    numbers.push(data.seq);
    if (data.seq === seq) expect(data).toMatchObject(seen);
    if (data.kind === 'turn.ended' && data.turnId === turn.id) break;
  }
  expect(numbers).toEqual(numbers.map((_, i) => i + 1));
  expect(numbers).toContain(seq);
  await using tl = await open({ server: url, token });
  for await (const event of tl.engine.follow('chat', { after: seq - 1 })) {
    expect(event).toMatchObject(seen);
    break;
  }
  expect(JSON.stringify(events)).not.toContain('4711');
  await caller.ok('POST', '/conversations/chat/kill');
  await caller.ok('DELETE', `/conversations/${id}`);
});

test('an event of a task of a newer version keeps its number, and erasing removes its texts', async () => {
  const stored = { seq: 9, task: 't-1', kind: 'task.reviewed', at: 5, payload: { pid: 4711 } } as unknown as TaskEvent;
  const published = { seq: 9, taskId: 't-1', at: 5, kind: 'event.unknown', payload: { kind: 'task.reviewed' } };
  expect(toPublicTaskEvent(stored)).toEqual(published);
  expectValid('#/components/schemas/TaskEvent', published, 'task.reviewed');
  expect(payloadWithoutWords('task.reviewed', '{"text":"secret"}')).toBe('{}');
  expect(payloadWithoutWords('task.started', '{"round":1,"iteration":1}')).toBeNull();
});
