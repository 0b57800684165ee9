import { copyFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect } from '../../../src/clients/http/connect.ts';
import { socketTransport } from '../../../src/clients/http/connection/node-transport.ts';
import { HttpTasks } from '../../../src/clients/http/tasks.ts';
import { CliHome } from '../../e2e/cli/process.ts';
import { type ServedProcess, serveProcess } from '../../e2e/http/support/served-process.ts';
import { until } from '../harness/until.ts';

let home: CliHome;
beforeEach(() => {
  home = new CliHome();
});
afterEach(() => home.remove());

const data = () => join(home.path, 'home', 'throughline.db');

async function stop({ running }: ServedProcess): Promise<void> {
  running.kill('SIGTERM');
  await running.ended;
}

/** Keeps a copy of the data file from before the second turn and the second task. Returns a server and a client that have both. */
async function withOlderCopy() {
  const first = await serveProcess(home);
  const ran = async ({ caller }: ServedProcess, prompt: string) => {
    await caller.finished((await caller.ok('POST', '/conversations/notes/turns', { prompt })).turn);
    await caller.ok('POST', '/tasks', { plan: { name: prompt, goal: '/say done' } });
  };
  await ran(first, 'one');
  const allDone = async ({ caller }: ServedProcess) =>
    (await caller.ok('GET', '/tasks')).tasks.every(({ state }: { state: string }) => state === 'done');
  await until('the task is done', () => allDone(first));
  await stop(first);
  copyFileSync(data(), `${data()}.old`);
  const second = await serveProcess(home);
  await ran(second, 'two');
  await until('the task is done', () => allDone(second));
  const engine = await connect({ transport: socketTransport(second.socket), token: second.token });
  const before = await engine.conversation('notes');
  const { seq, logId } = await second.caller.ok('GET', '/tasks');
  return { second, engine, before, board: { seq, logId } };
}

test('after an older copy was put back, readers get an error and do not wait for ever', async () => {
  const { second, engine, before, board } = await withOlderCopy();
  const tasks = new HttpTasks(engine.caller, null);
  const seen = { events: 0, tasks: 0 };
  const reading = [
    (async () => {
      for await (const { seq } of engine.follow('notes')) seen.events = seq;
    })(),
    (async () => {
      for await (const { seq } of tasks.follow()) seen.tasks = seq;
    })(),
  ].map((reader) => reader.catch((error) => error));
  await until('they have seen everything', () => seen.events === before.lastSeq && seen.tasks === board.seq);
  await stop(second);
  renameSync(`${data()}.old`, data());
  const { caller } = await serveProcess(home);

  for (const error of await Promise.all(reading)) {
    expect(error).toMatchObject({
      code: 'log_changed',
      hint: expect.stringMatching(/read again from the first event/i),
    });
  }
  const { lastSeq, logId } = await engine.conversation('notes');
  expect(lastSeq).toBeLessThan(before.lastSeq);
  expect(logId).not.toBe(before.logId);

  const refused = { status: 409, body: { code: 'log_changed' } };
  const events = '/conversations/notes/events';
  expect(await caller.get(`${events}?after=${before.lastSeq}`)).toMatchObject(refused);
  expect(await caller.get(`${events}?after=1&log=${before.logId}`)).toMatchObject(refused);
  expect(await caller.get(`/tasks/events?after=${board.seq}`)).toMatchObject(refused);
  expect(await caller.get(`/tasks/events?after=1&log=${board.logId}`)).toMatchObject(refused);
  for await (const { data: event } of caller.events(`${events}?after=${lastSeq - 1}&log=${logId}`)) {
    expect(event.seq).toBe(lastSeq);
    break;
  }
  for (const flags of [['--until-idle'], [], ['--log', before.logId, '--after', '1']]) {
    const { code, stderr } = await home.run('follow', 'notes', '--after', String(before.lastSeq), ...flags);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('first event') });
  }
  await engine.close();
});
