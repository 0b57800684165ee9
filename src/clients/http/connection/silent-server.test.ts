import { expect, test } from 'vitest';
import { INTERFACE, INTERFACE_HEADER } from '../../../wire/operations/operation.ts';
import { Connection, type Request, TIMING } from './connection.ts';
import type { Outgoing, Transport } from './transport.ts';

const REQUEST: Omit<Request, 'withinMs'> = { method: 'GET', path: '/me', headers: {}, repeatable: true };

/** A server that answers the first request; later ones are up to the test. */
function serverThat(then: (request: Outgoing) => Promise<never>) {
  let requests = 0;
  const transport: Transport = {
    where: 'test',
    async send(request) {
      requests += 1;
      if (requests > 1) return then(request);
      const header = (name: string) => (name === INTERFACE_HEADER ? INTERFACE : null);
      return { status: 200, header, text: async () => '{}', async *chunks() {} };
    },
    close() {},
  };
  return { transport, requests: () => requests };
}

const silence = ({ signal }: Outgoing) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

test('a server that takes a request and does not answer is unreachable after the time that it is waited for, not twice', async () => {
  const { transport, requests } = serverThat(silence);
  const connection = new Connection(transport, { ...TIMING, giveUpMs: 60, timeoutMs: 60 });
  const request = { ...REQUEST, withinMs: 60 };
  await connection.ask(request);
  await expect(connection.ask(request)).rejects.toMatchObject({ code: 'unreachable' });
  // It was not asked once more, which would have taken as long again.
  expect(requests()).toBe(2);
});

test('a server that is away and then does not answer is given up at the same time', async () => {
  const began = performance.now();
  const giveUpMs = 1_000;
  const { transport } = serverThat((request) =>
    performance.now() - began < giveUpMs * 0.7 ? Promise.reject(new Error('ECONNREFUSED')) : silence(request),
  );
  const connection = new Connection(transport, { ...TIMING, giveUpMs, timeoutMs: giveUpMs, longestMs: 20 });
  const request = { ...REQUEST, withinMs: giveUpMs };
  await connection.ask(request);
  const later = new Promise((resolve) => setTimeout(resolve, giveUpMs * 1.4, 'later'));
  const asked = connection.ask(request).catch((error) => error.code);
  expect(await Promise.race([asked, later])).toBe('unreachable');
});

test('a connection that is cut after a long wait is tried again: the server was there until then', async () => {
  let cuts = 0;
  const { transport, requests } = serverThat(async () => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    cuts += 1;
    throw new Error('ECONNRESET');
  });
  const connection = new Connection(transport, { ...TIMING, giveUpMs: 60 });
  await connection.ask({ ...REQUEST, withinMs: 600_000 });
  await expect(connection.ask({ ...REQUEST, withinMs: 600_000 })).rejects.toMatchObject({ code: 'unreachable' });
  expect([cuts, requests()]).toEqual([2, 3]);
});
