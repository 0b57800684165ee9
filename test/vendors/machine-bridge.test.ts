import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { processesAt } from '../../src/host/processes.ts';
import { localSandbox } from '../../src/sandboxes/shared/local-sandbox.ts';
import { operationsOf } from '../../src/sandboxes/vendors/inside/operations.ts';
import { Programs } from '../../src/sandboxes/vendors/inside/programs.ts';
import { bridgeServer } from '../../src/sandboxes/vendors/inside/serve.ts';
import { MachineBridge } from '../../src/sandboxes/vendors/machine-bridge.ts';
import { NotAnswered, sendToBridge } from '../../src/sandboxes/vendors/request.ts';
import type { Machine } from '../../src/sandboxes/vendors/vendor.ts';

const servers: Server[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

/** Starts a bridge of this version in this process, and returns its URL. When it is told to leave, its token is added to `left`. */
async function startBridge(token: string, leftTokens: string[] = []) {
  const processes = processesAt('test');
  const sandbox = localSandbox({ id: 'test', work: '/', state: '/', processes });
  const programs = new Programs(sandbox.spawn, async () => {});
  const leave = () => void leftTokens.push(token);
  const sandboxes = null as unknown as Parameters<typeof operationsOf>[0]['sandboxes'];
  const server = bridgeServer(operationsOf({ sandboxes, sandbox, programs, self: processes.self(), leave }), token);
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function machineAt(url: () => string, file: () => object, more: Partial<Machine> = {}): Machine {
  return {
    ...{ name: 'm', isAwake: true, folder: '/m', awakeForMs: null, address: url },
    ...{ read: async () => Buffer.from(JSON.stringify(file())), write: async () => {}, start: async () => {} },
    ...{ extend: async () => {}, rest: async () => {}, remove: async () => {}, ...more },
  };
}

function bridgeOf(machine: Machine, awakeMs = 60_000): MachineBridge {
  const vendor = {
    kind: 'vercel' as const,
    find: async () => machine,
    wake: async () => machine,
    names: async () => [],
  };
  const program = async () => ({ files: [], main: 'bridge.ts', version: 'now' });
  return new MachineBridge('m', { vendor, place: 'test', port: 1, awakeMs, program });
}

test('the bridge refuses every request without its token', async () => {
  const url = await startBridge('right');
  for (const token of ['', 'wrong', 'right2']) {
    await expect(sendToBridge({ url, token }, 'realPath', { path: '/' })).rejects.toBeInstanceOf(NotAnswered);
    const response = await fetch(`${url}/realPath`, { method: 'POST', headers: { authorization: `Bearer ${token}` } });
    expect(response.status).toBe(401);
  }
  expect((await sendToBridge({ url, token: 'right' }, 'realPath', { path: '/' })).head).toBe('/');
});

test('a bridge of another version is ended, and a new one is started', async () => {
  const leftTokens: string[] = [];
  let running = { url: await startBridge('old', leftTokens), file: { version: 'before', port: 1, token: 'old' } };
  const newUrl = await startBridge('new', leftTokens);
  const start = vi.fn(async () => {
    running = { url: newUrl, file: { version: 'now', port: 1, token: 'new' } };
  });
  const machine = machineAt(
    () => running.url,
    () => running.file,
    { start },
  );
  expect((await bridgeOf(machine).call('realPath', { path: '/' })).head).toBe('/');
  expect(start).toHaveBeenCalledOnce();
  expect(leftTokens).toEqual(['old']);
});

test('a machine is kept awake only while it is used', async () => {
  const url = await startBridge('token');
  const extend = vi.fn(async () => {});
  const bridge = bridgeOf(
    machineAt(
      () => url,
      () => ({ version: 'now', port: 1, token: 'token' }),
      { extend, awakeForMs: 60_000 },
    ),
  );
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  await bridge.call('hello', undefined as never);
  // The machine has 60 seconds left, so it is extended after 30 at the earliest.
  const releases = [bridge.use(), bridge.use()];
  await vi.advanceTimersByTimeAsync(25_000);
  expect(extend).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(300_000);
  const calls = extend.mock.calls.length;
  expect(calls).toBeGreaterThanOrEqual(7);
  expect(extend).toHaveBeenLastCalledWith(60_000);
  for (const release of releases) release();
  await vi.advanceTimersByTimeAsync(600_000);
  expect(extend).toHaveBeenCalledTimes(calls);
});
