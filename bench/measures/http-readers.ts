import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Measure } from '../finding.ts';
import { HttpProcess } from '../support/http-process.ts';
import { median, quantile } from '../support/statistics.ts';

const CONVERSATIONS = 100;
const EVERY_MS = 200;

/**
 * Readers of conversations that stream, beside as many readers that are connected but read nothing. The latency is from the time in an
 * event (when its commit began) until a reader has it, by the clock of the same machine.
 */
const measure: Measure = async ({ quick }) => {
  const [live, stalled, seconds] = quick ? [100, 100, 3] : [1_000, 1_000, 30];
  const chunks = (seconds * 1_000) / EVERY_MS;
  const server = await HttpProcess.start({ chunks, everyMs: EVERY_MS, running: CONVERSATIONS });
  const ids = await Promise.all(
    Array.from({ length: CONVERSATIONS }, async (_, i) => {
      return JSON.parse((await server.post('/conversations', { key: `c${i}` })).text).id as string;
    }),
  );
  const latencies: number[] = [];
  const open = (i: number, onData: ((text: string) => void) | null) =>
    reader(server.port, ids[i % CONVERSATIONS] as string, onData);
  const sockets = [
    ...Array.from({ length: stalled }, (_, i) => open(i, null)),
    ...Array.from({ length: live }, (_, i) =>
      open(i, (text) => {
        const now = Date.now();
        for (const [, at] of text.matchAll(/"kind":"turn\.update","turnId":"[^"]*","at":(\d+)/g))
          latencies.push(now - Number(at));
      }),
    ),
  ];
  await Promise.all(sockets.map(({ begun }) => begun));
  await Promise.all(ids.map((id) => server.post(`/conversations/${id}/turns`, { prompt: 'Go.' })));
  let most = 0;
  for (let second = 0; second < seconds + 2; second += 1) {
    await pause(1_000);
    most = Math.max(most, await server.rss());
  }
  for (const { socket } of sockets) socket.destroy();
  await server.close();
  const expected = live * chunks;
  const beside = `${live} readers of ${CONVERSATIONS} conversations with an event every ${EVERY_MS} ms each, beside ${stalled} that take nothing`;
  return [
    {
      name: 'from append to reader, p99',
      value: quantile(latencies, 0.99),
      unit: 'ms',
      target: { kind: 'must', most: 250 },
      note: `${beside}; p50 ${median(latencies)} ms; ${latencies.length} of ${expected} seen; readers are on the same machine`,
    },
    {
      name: 'memory of a server with readers',
      value: most / 1e6,
      unit: 'MB',
      target: { kind: 'must', most: 350 },
      note: `resident at the most, ${beside}; from the sources`,
    },
  ];
};

/** Reads from a plain socket, so that the client takes as little time as possible. */
function reader(port: number, conversation: string, onData: ((text: string) => void) | null) {
  const socket: Socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  const path = `/v1/conversations/${conversation}/events`;
  socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer bench\r\n\r\n`);
  const begun = new Promise<void>((resolve) => {
    socket.once('data', () => {
      resolve();
      if (onData === null) socket.pause();
    });
  });
  if (onData !== null) socket.setEncoding('latin1').on('data', (text) => onData(String(text)));
  return { socket, begun };
}

export default measure;
