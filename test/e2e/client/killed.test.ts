// A server process is killed with SIGKILL while a client uses it, and started again.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect } from '../../../src/clients/http/connect.ts';
import { socketTransport } from '../../../src/clients/http/connection/node-transport.ts';
import type { PublicEvent } from '../../../src/core/public/event.ts';
import { until } from '../../faults/harness/until.ts';
import { CliHome } from '../cli/process.ts';
import { serveProcess } from '../http/support/served-process.ts';
import { allEvents, expectSound } from '../support/conversations.ts';

const KEYS = ['one', 'two'];
const PROMPTS = Array.from({ length: 6 }, (_, i) => `/stream 3 20\n/say prompt ${i}`);
const KILLS = 2;

let home: CliHome;
beforeEach(() => {
  home = new CliHome();
});
afterEach(() => home.remove());

test('when the server is killed while prompts are sent and followed, each prompt is one turn, and readers get every event once', async () => {
  let server = await serveProcess(home);
  const transport = socketTransport(server.socket);
  const timing = { longestMs: 100, giveUpMs: 120_000 }; // a busy machine takes long to start a server
  const engine = await connect({ transport, token: server.token, timing });
  const stop = new AbortController();
  const seen = new Map<string, PublicEvent[]>();
  const reading: Promise<void>[] = [];
  for (const key of KEYS) {
    await engine.ensure({ key });
    const events: PublicEvent[] = [];
    seen.set(key, events);
    reading.push(follow(key, events));
  }
  let accepted = 0;
  const submitting = KEYS.map(async (key) => {
    for (const prompt of PROMPTS) {
      await engine.submit(key, prompt);
      accepted += 1;
    }
  });
  for (let kill = 1; kill <= KILLS; kill += 1) {
    const enough = (kill * KEYS.length * PROMPTS.length) / (KILLS + 1);
    await until('some prompts were accepted', () => accepted >= enough);
    server.running.kill('SIGKILL');
    await server.running.ended;
    server = await serveProcess(home);
  }
  await Promise.all(submitting);
  for (const key of KEYS) {
    await until(`every turn of ${key} has ended`, async () => (await engine.summary(key)).open === 0);
    const turns = await engine.turns(key);
    expect(turns.map(({ prompt }) => (prompt[0] as { text: string }).text)).toEqual(PROMPTS);
    await expectSound(engine, key);
    const all = await allEvents(engine, key);
    await until('the reader has everything', () => (seen.get(key)?.length ?? 0) >= all.length);
    // There may be more events by now: the new server records the end of sessions that the killed one had kept warm.
    const read = seen.get(key) ?? [];
    expect(read.slice(0, all.length)).toEqual(all);
    expect(read.map(({ seq }) => seq)).toEqual(read.map((_, index) => index + 1));
  }
  stop.abort();
  await Promise.all(reading);
  await engine.close();

  async function follow(key: string, into: PublicEvent[]): Promise<void> {
    for await (const event of engine.follow(key, { signal: stop.signal })) into.push(event);
  }
});
