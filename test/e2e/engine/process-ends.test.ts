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

/** A program that reads the conversation: what it says, line by line, and with what code it ends by itself. */
function reader(home: Home, conversation: string, what: 'leaves' | 'waits') {
  const options = JSON.stringify({ home: home.path, settings: { agents: {} }, engine: { pollMs: 50 } });
  const child = spawn(process.execPath, [PROGRAM, options, conversation, what], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  return {
    said: createInterface({ input: child.stdout })[Symbol.asyncIterator](),
    ended: once(child, 'exit').then(([code]) => code as number | null),
  };
}

test('whoever has taken an event and asks for no more lets the process end', async () => {
  await using home = new Home();
  const { engine } = await home.open();
  const { id } = await engine.ensure({ key: 'chat' });
  const { said, ended } = reader(home, id, 'leaves');
  expect((await said.next()).value).toBe('took 1');
  expect(await ended).toBe(0);
});

test('whoever waits for the next event keeps the process until it has come', async () => {
  await using home = new Home();
  const { engine } = await home.open();
  const { id } = await engine.ensure({ key: 'chat' });
  const { said, ended } = reader(home, id, 'waits');
  expect((await said.next()).value).toBe('took 1');
  expect((await said.next()).value).toBe('still here');
  await engine.rename(id, 'Another title');
  expect((await said.next()).value).toBe('took 2');
  expect(await ended).toBe(0);
});

test('an agent that fails before it has named its session is ended with its turn: nobody would find its process again', async () => {
  const mark = randomUUID();
  await using home = new Home();
  const late = { adapter: 'scripted', options: { nameLate: true }, env: { [MARK]: mark } } as const;
  const tl = await home.open({}, { settings: { agents: { late } } });
  const chat = tl.conversation('chat', { agent: 'late' });
  await expect(chat.ask('/fail agent_failed')).rejects.toMatchObject({ code: 'agent_failed' });
  expect((await chat.sessions()).length).toBe(0);
  await until('its process to end', () => marked(mark).length === 0);
  expect((await chat.ask('The codeword is amber.')).turn.state).toBe('completed');
});
