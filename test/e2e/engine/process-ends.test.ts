import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { MARK, marked } from '../../faults/harness/marked.ts';
import { testProgram } from '../../program.ts';
import { until } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const PROGRAM = testProgram(new URL('../support/reader-program.ts', import.meta.url));

/** Starts a program that reads the conversation, and exits when nothing keeps it running. `lines`: its output. */
function startReader(home: Home, conversation: string, mode: 'leaves' | 'waits') {
  const options = JSON.stringify({ home: home.path, settings: { agents: {} }, engine: { pollMs: 50 } });
  const child = spawn(process.execPath, [PROGRAM, options, conversation, mode], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  return {
    lines: createInterface({ input: child.stdout })[Symbol.asyncIterator](),
    exitCode: once(child, 'exit').then(([code]) => code as number | null),
  };
}

test('a process that has read an event and does not wait for the next one exits', async () => {
  await using home = new Home();
  const { engine } = await home.open();
  const { id } = await engine.ensure({ key: 'chat' });
  const { lines, exitCode } = startReader(home, id, 'leaves');
  expect((await lines.next()).value).toBe('took 1');
  expect(await exitCode).toBe(0);
});

test('a process that waits for the next event does not exit before the event has come', async () => {
  await using home = new Home();
  const { engine } = await home.open();
  const { id } = await engine.ensure({ key: 'chat' });
  const { lines, exitCode } = startReader(home, id, 'waits');
  expect((await lines.next()).value).toBe('took 1');
  expect((await lines.next()).value).toBe('still here');
  await engine.rename(id, 'Another title');
  expect((await lines.next()).value).toBe('took 2');
  expect(await exitCode).toBe(0);
});

test('an agent that fails before it has named its session is ended with its turn: its process could not be found again', async () => {
  const mark = randomUUID();
  await using home = new Home();
  const late = { adapter: 'scripted', options: { nameLate: true }, env: { [MARK]: mark } } as const;
  const tl = await home.open({}, { settings: { agents: { late } } });
  const chat = tl.conversation('chat', { agent: 'late' });
  await expect(chat.ask('/fail agent_failed')).rejects.toMatchObject({ code: 'agent_failed' });
  expect((await chat.sessions()).length).toBe(0);
  await until('its process has ended', () => marked(mark).length === 0);
  expect((await chat.ask('The codeword is amber.')).turn.state).toBe('completed');
  expect(marked(mark)).toHaveLength(1); // the warm agent of the turn that completed: the mark finds processes
});
