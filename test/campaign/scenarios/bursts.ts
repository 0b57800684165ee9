import { get, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { Scenario } from '../harness/figures.ts';
import { World } from '../harness/world.ts';

/** How long `/livez` may take during the burst, on a new connection; and how long when other tests slow the client down as well. */
const LONGEST_MS = 2_000;
const LONGEST_BESIDE_OTHERS_MS = 20_000;
/** On a busy machine the limit is this multiple of the time before the burst. */
const TIMES = 50;

export const bursts: Scenario = {
  name: 'bursts',
  does: 'first prompts to many new conversations at the same moment, each on a connection of its own, while somebody asks for the health on fresh connections',
  async run({ long }) {
    const count = long ? 200 : 30;
    await using world = await World.start({
      agents: () => ({ scripted: { adapter: 'scripted' } }),
      owners: ['ann', 'bob'],
    });
    const calm = await Promise.all([1, 2, 3].map(() => healthMs(world)));
    const healthy = { slowest: 0, asked: 0 };
    const stop = new AbortController();
    const watching = watch(world, healthy, stop.signal);
    const submitted = await Promise.all(
      Array.from({ length: count }, (_, i) => submit(world, i % 2 === 0 ? 'ann' : 'bob', `c${i}`, `word-${i}`)),
    );
    const violations: string[] = [];
    for (const { owner, word, status, turn } of submitted) {
      if (status !== 202) violations.push(`the prompt with ${word} was answered with ${status}`);
      else violations.push(...(await ended(world, owner, turn, word)));
    }
    stop.abort();
    await watching;
    const most = Math.max(long ? LONGEST_MS : LONGEST_BESIDE_OTHERS_MS, TIMES * Math.max(...calm));
    if (healthy.slowest > most) violations.push(`/livez took ${healthy.slowest} ms during the burst`);
    violations.push(...(await world.leftOver()));
    const figures = { 'conversations at once': count, 'health checks': healthy.asked };
    return { figures: { ...figures, 'ms for the slowest health check': healthy.slowest }, violations };
  },
};

async function watch(world: World, healthy: { slowest: number; asked: number }, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    healthy.slowest = Math.max(healthy.slowest, await healthMs(world));
    healthy.asked += 1;
    await pause(50);
  }
}

function healthMs(world: World): Promise<number> {
  const start = performance.now();
  return new Promise((resolve, reject) => {
    const asked = get(`${world.url}/livez`, { agent: false }, (response) => {
      response.resume().on('end', () => resolve(Math.round(performance.now() - start)));
    });
    asked.on('error', reject);
  });
}

interface Submitted {
  readonly owner: string;
  readonly word: string;
  readonly status: number;
  readonly turn: string;
}

function submit(world: World, owner: string, key: string, word: string): Promise<Submitted> {
  const headers = { authorization: `Bearer ${world.key(owner)}`, 'content-type': 'application/json' };
  const address = `${world.url}/v1/conversations/${key}/turns`;
  return new Promise((resolve, reject) => {
    const asked = request(address, { method: 'POST', headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => {
        resolve({ owner, word, status: response.statusCode ?? 0, turn: JSON.parse(text).turn?.id ?? '' });
      });
    });
    asked.on('error', reject);
    asked.end(JSON.stringify({ prompt: `The codeword is ${word}.\nWhich codewords have you seen?`, requestId: word }));
  });
}

/** The turn must complete, and its agent must know only its own word. */
async function ended(world: World, owner: string, turn: string, word: string): Promise<string[]> {
  for (let waits = 0; waits < 6; waits += 1) {
    const { status, body } = await world.caller(owner).get(`/turns/${turn}/answer?wait=30`);
    if (status === 409) continue;
    const right = body.turn?.state === 'completed' && body.reply === `I have seen these codewords: ${word}.`;
    return right ? [] : [`the turn with ${word}: ${status} ${body.turn?.state} "${body.reply}"`];
  }
  return [`the turn with ${word} has not ended within three minutes`];
}
