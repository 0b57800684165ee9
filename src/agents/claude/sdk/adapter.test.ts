import assert from 'node:assert';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestSandboxes, until } from '../../../../test/contracts/agent-sandbox.ts';
import { identityOf, isAlive } from '../../../../test/contracts/liveness.ts';
import { ThroughlineError } from '../../../core/errors.ts';
import type { OpenSandbox } from '../../../ports/sandbox.ts';
import { ClaudeRefusal, type ConnectRequest } from '../connection.ts';
import { sdkConnect } from './adapter.ts';
import { loadSdk, type Sdk, type SdkOptions } from './sdk.ts';

let sandboxes: TestSandboxes;
let sandbox: OpenSandbox;
beforeEach(async () => {
  sandboxes = new TestSandboxes();
  sandbox = await sandboxes.sandbox();
});
afterEach(() => sandboxes.dispose());

interface Seen {
  options?: SdkOptions;
  servers?: object;
}

/** An SDK that starts our test program and is ready when that prints something. `about` gives its answer about servers. */
function fakeSdk(script: string, seen: Seen = {}, about: () => Promise<unknown> = async () => ({ errors: {} })): Sdk {
  return {
    query({ prompt, options }) {
      seen.options = options;
      const child = options.spawnClaudeCodeProcess({
        command: process.execPath,
        args: ['-e', script],
        env: { ...options.env, UNSET: undefined },
      });
      const up = new Promise((resolve, reject) => {
        child.stdout.once('data', resolve);
        child.once('exit', (code: number) => reject(new Error(`exited with code ${code}`)));
        child.once('error', reject);
      });
      const messages = (async function* () {
        await up;
        for await (const message of prompt) yield { type: 'echo', uuid: message.uuid };
        child.stdin.end();
      })();
      const setMcpServers = (servers: object) => {
        seen.servers = servers;
        return about();
      };
      const nothing = async () => {};
      const settings = { setPermissionMode: nothing, applyFlagSettings: nothing };
      return Object.assign(messages, {
        interrupt: nothing,
        initializationResult: () => up,
        setMcpServers,
        ...settings,
      });
    },
  };
}

const UP = 'console.log("up"); process.stdin.on("end", () => process.exit(0)).resume();';

function connect(sdk: Sdk, more: Partial<ConnectRequest> = {}, options = {}) {
  const request: ConnectRequest = {
    sandbox,
    env: { MARK: 'yes' },
    how: { kind: 'new', id: 'id-1' },
    noTools: false,
    model: null,
    signal: new AbortController().signal,
    onPermission: async () => ({ behavior: 'deny', message: 'no' }),
    ...more,
  };
  const known = { home: 'user', trustProject: false, mcpServers: [], ...options } as const;
  return sdkConnect(async () => ({ sdk, command: ['claude'] }), known)(request);
}

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error: unknown) => error,
  );

test('when Claude answers its start with an error, the failure contains that error, and Claude is ended', async () => {
  const refusing: Sdk = {
    query: (asked) => {
      const query = fakeSdk(UP).query(asked);
      const up = query.initializationResult();
      const refused = async () => {
        await up;
        throw new Error('This model is disabled');
      };
      return Object.assign(query, { initializationResult: refused });
    },
  };
  const fresh = (await failure(connect(refusing))) as ThroughlineError;
  expect([fresh.code, fresh.message]).toEqual([
    'agent_unavailable',
    'Claude did not open its session: This model is disabled.',
  ]);
  const resumed = (await failure(connect(refusing, { how: { kind: 'resume', id: 'id-1' } }))) as ClaudeRefusal;
  expect([resumed.reason, resumed.message]).toEqual([
    'refused',
    'Claude did not open its session: This model is disabled',
  ]);
});

test('a message of the SDK is sent to Claude as one line, whichever characters a reader treats as line ends', async () => {
  const sdk = fakeSdk(`
    console.log('up');
    const lines = require('node:readline').createInterface({ input: process.stdin });
    lines.on('line', (line) => require('node:fs').appendFileSync('lines', line + '\\n'));
    lines.on('close', () => process.exit(0));`);
  const text = 'a\u2028{"type":"user"}\u2029b “quoted” \u2027';
  const writing: Sdk = {
    query: (asked) =>
      sdk.query({
        ...asked,
        options: {
          ...asked.options,
          spawnClaudeCodeProcess: (how) => {
            const child = asked.options.spawnClaudeCodeProcess(how);
            child.stdin.write(`${JSON.stringify({ text })}\n`);
            return child;
          },
        },
      }),
  };
  const connection = await connect(writing);
  const written = join(sandbox.work, 'lines');
  await until('it has read something', () => existsSync(written));
  await connection.close();
  const lines = readFileSync(written, 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line))).toEqual([{ text }]);
});

test('the process runs in the sandbox with our environment, and has ended after close', async () => {
  const seen: Seen = {};
  const connection = await connect(fakeSdk(UP, seen), { model: 'm' }, { permissionMode: 'plan' });
  expect(connection.alive).toBe(true);
  expect(identityOf(connection.process).pid).toBeGreaterThan(0);
  expect(connection.ending).toBeNull();
  expect(seen.options).toMatchObject({
    sessionId: 'id-1',
    model: 'm',
    extraArgs: { 'permission-mode': 'plan' },
    verbatimPrompts: true,
    includePartialMessages: true,
    strictMcpConfig: true,
    settings: { cleanupPeriodDays: 36_500 },
    env: { MARK: 'yes' },
  });
  expect(seen.options).not.toHaveProperty('settingSources');
  connection.send({
    type: 'user',
    uuid: 'u1',
    session_id: '',
    parent_tool_use_id: null,
    message: { role: 'user', content: 'x' },
  });
  for await (const message of connection.messages) {
    expect(message).toEqual({ type: 'echo', uuid: 'u1' });
    break;
  }
  await Promise.all([connection.close(), connection.close()]);
  expect(connection.alive).toBe(false);
  expect(connection.ending).toBe('with code 0');
  await connection.kill();
  await connection.interrupt();
});

test('without tools there are no settings files either, because their hooks could run something', async () => {
  const seen: Seen = {};
  const connection = await connect(fakeSdk(UP, seen), { noTools: true }, { settingSources: ['user'] });
  await connection.kill();
  expect(seen.options).toMatchObject({ tools: [], settingSources: [] });
  expect(connection.ending).toBe('by SIGKILL');
});

const NOTES = { name: 'notes', command: 'notes', args: [], env: [{ name: 'TOKEN', value: 'of-notes' }] };

test('servers are given to a running Claude, not in arguments; without tools there are none', async () => {
  const seen: Seen = {};
  const connection = await connect(fakeSdk(UP, seen), {}, { mcpServers: [NOTES] });
  await connection.kill();
  expect(seen.servers).toEqual({ notes: { type: 'stdio', command: 'notes', args: [], env: { TOKEN: 'of-notes' } } });
  expect(JSON.stringify(seen.options)).not.toContain('of-notes');
  const without: Seen = {};
  await (await connect(fakeSdk(UP, without), { noTools: true }, { mcpServers: [NOTES] })).kill();
  expect(without.servers).toBeUndefined();
});

test('when a server does not start or is refused, Claude is unavailable and no process is left', async () => {
  const pids: number[] = [];
  const watched: OpenSandbox = {
    ...sandbox,
    spawn: async (...given) => {
      const child = await sandbox.spawn(...given);
      pids.push(identityOf(child.identity).pid);
      return child;
    },
  };
  const fails = fakeSdk(UP, {}, async () => ({ errors: { notes: 'ENOENT of-notes' } }));
  expect(await failure(connect(fails, { sandbox: watched }, { mcpServers: [NOTES] }))).toMatchObject({
    code: 'agent_unavailable',
    message: expect.stringMatching(/An MCP server did not start\. "notes": ENOENT …$/),
  });
  const refuses = fakeSdk(UP, {}, () => Promise.reject(new Error('no such request')));
  expect(await failure(connect(refuses, { sandbox: watched }, { mcpServers: [NOTES] }))).toMatchObject({
    code: 'agent_unavailable',
    message: 'Claude refused the MCP servers: no such request.',
  });
  expect(pids.map(isAlive)).toEqual([false, false]);
});

test.each([
  ['No conversation found with session ID: x', 'not_found'],
  ['Session ID x is already in use.', 'in_use'],
  ['something else', 'refused'],
])('a refused resume has the reason that Claude printed: %s', async (words, reason) => {
  const sdk = fakeSdk(`console.error(${JSON.stringify(words)}); process.exit(1)`);
  const error = await failure(connect(sdk, { how: { kind: 'resume', id: 'x' } }));
  expect(error).toBeInstanceOf(ClaudeRefusal);
  expect(error).toMatchObject({ reason, message: expect.stringContaining(words) });
});

test('a Claude that ends early or cannot be started is unavailable', async () => {
  const ends = await failure(connect(fakeSdk('console.error("broken"); process.exit(3)')));
  expect(ends).toBeInstanceOf(ThroughlineError);
  expect(ends).toMatchObject({ code: 'agent_unavailable', message: expect.stringContaining('broken') });
  const gone = { ...sandbox, spawn: () => Promise.reject(new ThroughlineError('agent_unavailable', 'not there')) };
  expect(await failure(connect(fakeSdk(UP), { sandbox: gone }))).toMatchObject({ message: 'not there' });
});

test('an SDK that throws or stops reading leaves no process behind', async () => {
  const throws = { query: () => assert.fail('no such option') };
  expect(await failure(connect(throws))).toMatchObject({ code: 'agent_unavailable' });
  const deaf = fakeSdk('console.log("up"); setInterval(() => {}, 1000)');
  const connection = await connect({
    query: (request) => Object.assign(deaf.query(request), { [Symbol.asyncIterator]: () => assert.fail('no JSON') }),
  });
  for await (const _ of connection.messages) assert.fail('nothing can come');
  expect(connection.alive).toBe(false);
});

test('an abort during the start ends Claude', async () => {
  const abort = new AbortController();
  let pid = 0;
  const watched: OpenSandbox = {
    ...sandbox,
    spawn: async (...given) => {
      const child = await sandbox.spawn(...given);
      pid = identityOf(child.identity).pid;
      abort.abort();
      return child;
    },
  };
  const script = 'setInterval(() => {}, 1000)';
  expect(await failure(connect(fakeSdk(script), { sandbox: watched, signal: abort.signal }))).not.toBeNull();
  expect(isAlive(pid)).toBe(false);
});

test('a file that is not the SDK is unavailable', () => {
  const folder = mkdtempSync(join(tmpdir(), 'throughline-no-sdk-'));
  expect(() => loadSdk(join(folder, 'sdk.mjs'))).toThrowError(ThroughlineError);
  rmSync(folder, { recursive: true });
});
