import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestSandboxes, until } from '../../../../test/contracts/agent-sandbox.ts';
import { AcpConnection, AgentGone } from './connection.ts';

let sandboxes: TestSandboxes;
let opened: AcpConnection[];
beforeEach(() => {
  sandboxes = new TestSandboxes();
  opened = [];
});
afterEach(async () => {
  await Promise.all(opened.map((connection) => connection.kill()));
  await sandboxes.dispose();
});

/** An agent that is a few lines of JavaScript: `say` prints a message. */
async function agent(script: string, request: () => Promise<unknown> = async () => ({})) {
  const sandbox = await sandboxes.sandbox();
  const say = "const say = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');";
  const child = await sandbox.spawn([process.execPath, '-e', `${say}\n${script}`], { env: {} });
  const heard = { notifications: [] as unknown[], requests: 0, gone: null as string | null };
  const connection = new AcpConnection(child, {
    notification: (_, params) => heard.notifications.push(params),
    request: () => {
      heard.requests += 1;
      return request();
    },
    gone: (how) => {
      heard.gone = how;
    },
  });
  opened.push(connection);
  return { connection, heard };
}

/** Prints a text again and again, as fast as it is read. */
const endlessly = (piece: string) => `let n = 0; const go = () => process.stdout.write(${piece}, go); go();`;

const isGone = (heard: { gone: string | null }) => until('it is gone', () => heard.gone !== null);

test('the first answer to a request counts; further ones are dropped', async () => {
  const { connection, heard } = await agent(`
    process.stdin.once('data', () => {
      say({ id: 77, result: 'to nobody' });
      for (const result of ['first', 'second']) say({ id: 0, result });
      say({ result: 'without an id' });
      say({ method: 'done' });
    })`);
  // The SDK would report on stderr that it got an answer to an unknown request.
  const complaints: unknown[] = [];
  const { error } = console;
  console.error = (...words: unknown[]) => complaints.push(words);
  try {
    expect(await connection.request('ask', {})).toBe('first');
    await until('all was said', () => heard.notifications.length === 1);
    await new Promise(setImmediate);
  } finally {
    console.error = error;
  }
  expect(complaints).toEqual([]);
});

test('an agent that sends too much, a too long line, or a too deeply nested message is ended', async () => {
  const loud = await agent(`const line = 'x'.repeat(2 ** 24) + '\\n'; ${endlessly('line')}`);
  const long = await agent(`const part = 'x'.repeat(2 ** 24); ${endlessly('part')}`);
  const deep = await agent(`
    const params = '['.repeat(100000) + ']'.repeat(100000);
    process.stdout.write('{"jsonrpc":"2.0","method":"x","params":' + params + '}\\n');
    setInterval(() => {}, 1000);`);
  await Promise.all([loud, long, deep].map(({ heard }) => isGone(heard)));
  expect(loud.heard.gone).toMatch(/^was ended: it sent more than 256 MiB at once/);
  expect(long.heard.gone).toMatch(/^was ended: it printed a line that is too long/);
  expect(deep.heard).toMatchObject({ gone: expect.stringMatching(/^was ended: .* nested deeper/), notifications: [] });
});

test('after a message that is refused nothing more is taken: an answer that follows it is none', async () => {
  const deep = `{"jsonrpc":"2.0","method":"x","params":${'['.repeat(201)}${']'.repeat(201)}}`;
  const { connection, heard } = await agent(`
    process.stdin.once('data', () => {
      process.stdout.write(${JSON.stringify(deep)} + '\\n' + JSON.stringify({ jsonrpc: '2.0', id: 0, result: 'done' }) + '\\n');
      say({ method: 'later' });
      say({ id: 1, method: 'ask', params: {} });
      setInterval(() => {}, 1000);
    })`);
  const asked = connection.request('ask', {});
  await expect(asked).rejects.toThrow(/was ended: it printed a message that is nested deeper than 200 levels/);
  await expect(asked).rejects.toBeInstanceOf(AgentGone);
  expect(heard).toMatchObject({ notifications: [], requests: 0 });
});

test('the limit for what an agent sends starts again with each turn', async () => {
  const { connection, heard } = await agent(`
    const line = 'x'.repeat(2 ** 24) + '\\n';
    process.stdin.on('data', () => {
      for (let n = 0; n < 9; n += 1) process.stdout.write(line);
      say({ method: 'done' });
    })`);
  for (let turn = 1; turn <= 2; turn += 1) {
    connection.notify('go', {});
    await until('it has talked', () => heard.notifications.length === turn);
    connection.resetLimit();
  }
  expect(heard.gone).toBeNull();
});

test('we stop reading from an agent with too many open requests, and still notice its end', async () => {
  const { connection, heard } = await agent(
    endlessly(`JSON.stringify({ jsonrpc: '2.0', id: (n += 1), method: 'ask', params: {} }) + '\\n'`),
    () => new Promise(() => {}),
  );
  await until('it has asked', () => heard.requests >= 1_000);
  await new Promise((resolve) => setTimeout(resolve, 100));
  // A few chunks of its output have at most this many. It would send ten times as many in that time.
  expect(heard.requests).toBeLessThan(8_000);
  await connection.kill();
  expect(heard.gone).toContain('SIGKILL');
});

test('a request fails with the reason when the agent is gone', async () => {
  const { connection } = await agent('setInterval(() => {}, 1000)');
  const asked = connection.request('ask', {});
  connection.stop('it did not answer');
  await expect(asked).rejects.toThrow('the agent’s process was ended: it did not answer');
  await expect(asked).rejects.toBeInstanceOf(AgentGone);
});
