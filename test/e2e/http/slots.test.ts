import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AGENTS } from '../cli/agents.ts';
import { CliHome, until } from '../cli/process.ts';
import { type ServedProcess, serveProcess } from './support/served-process.ts';

let home: CliHome;
let server: ServedProcess;
beforeAll(async () => {
  home = new CliHome();
  writeFileSync(
    home.config,
    JSON.stringify({ defaultAgent: 'scripted', agents: AGENTS, turns: { parallel: 2, perOwner: 1 } }),
  );
  server = await serveProcess(home);
});
afterAll(() => home.remove());

const DELAY =
  'Turn 1 waits for a slot: 1 turn is running for its owner, which is the limit. ' +
  'It begins by itself. The setting "turns.perOwner" is the limit.';

test('every command and operation that shows a turn says that it waits for a slot, and /metrics shows the slots', async () => {
  const { turn: first } = await server.caller.ok('POST', '/conversations/first/turns', { prompt: '/await go' });
  await until(async () => (await server.caller.ok('GET', `/turns/${first.id}`)).sent !== null);
  const sending = home.start(['send', 'second', 'Hello.']);
  await sending.until('stderr', /^Waiting: Turn 1 waits for a slot/m);
  expect(sending.stderr).toContain(`Waiting: ${DELAY}`);
  for (const command of ['show', 'summary']) expect(await home.ok(command, 'second')).toContain(DELAY);
  expect(await home.ok('list')).toContain(`  ${DELAY}`);
  // The turn will begin by itself, so `follow --until-idle` continues to wait for its end.
  const following = home.start(['follow', 'second', '--until-idle']);
  await following.until('stderr', /waits for a slot/);

  const { turns } = await server.caller.ok('GET', '/conversations/second/turns');
  const [turn] = turns;
  expect(turn).toMatchObject({ state: 'queued', stranded: null, delayed: { reason: 'owner_slots' } });
  const answer = await server.caller.get(`/turns/${turn.id}/answer`);
  expect(answer).toMatchObject({ status: 409, body: { code: 'conflict' } });
  expect(JSON.stringify(answer.body)).toContain('Turn 1 waits for a slot');
  expect(await metrics()).toMatchObject({
    throughline_slots: '2',
    'throughline_turns{state="running"}': '1',
    'throughline_turns{state="waiting"}': '0',
  });

  writeFileSync(join(home.path, 'home', 'sandboxes', first.conversationId, 'work', 'go'), '');
  expect((await sending.ended).code).toBe(0);
  expect((await following.ended).code).toBe(0);
  await until(async () => (await metrics())['throughline_turns{state="running"}'] === '0');
  // Five commands ran while the turn was queued: that takes more than a second.
  expect(Number((await metrics()).throughline_turn_queue_seconds_total)).toBeGreaterThan(1);
});

test('/metrics counts a turn that waits for an answer as waiting, not as running', async () => {
  const body = { prompt: '/ask May I?', permissions: 'ask' };
  const { turn } = await server.caller.ok('POST', '/conversations/asks/turns', body);
  await until(async () => (await metrics())['throughline_turns{state="waiting"}'] === '1');
  expect((await metrics())['throughline_turns{state="running"}']).toBe('0');
  await server.caller.ok('POST', `/turns/${turn.id}/cancel`);
  await until(async () => (await metrics())['throughline_turns{state="waiting"}'] === '0');
});

async function metrics(): Promise<Record<string, string>> {
  const response = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${server.token}` } });
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(lines.map((line) => line.split(' ') as [string, string]));
}
