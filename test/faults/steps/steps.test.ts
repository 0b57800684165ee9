import { describe, expect, test } from 'vitest';
import type { TurnEnd } from '../../../src/core/turn/turn.ts';
import type { AgentName } from '../harness/agents.ts';
import type { Hook } from '../harness/hook.ts';
import { marked } from '../harness/marked.ts';
import { newcomer } from '../harness/newcomer.ts';
import { Place } from '../harness/place.ts';
import { until } from '../harness/until.ts';
import { gapless, inOrder, oneEnd, ranOnce } from '../storm/checks.ts';
import { readFacts } from '../storm/facts.ts';
import { codewordsIn, QUESTION } from '../storm/prompts.ts';

/*
 * A process is killed at one exact step of a turn, before or after the step is durable. It had submitted two turns. A newcomer submits the
 * same two requests and waits for their ends. R6 defines these: a turn that was not sent runs again and completes, one that was sent is
 * interrupted, one that has ended stays as it is.
 */
interface Step {
  readonly verb: Hook['verb'];
  readonly write?: string;
  readonly since?: string;
  /** The kill hits the second turn, in a session that has completed the first. */
  readonly second?: true;
  /** The session is warm. */
  readonly warm?: true;
  readonly agent?: AgentName;
  /** The ends of the turn that is hit: killed before the step, and after it. The other turn completes in any case. */
  readonly ends: readonly [TurnEnd, TurnEnd];
  /** How often the tool of that turn ran, likewise. Left out: never or once, depending on how far an orphan came. */
  readonly ran?: readonly [number, number];
}

const COMPLETES = ['completed', 'completed'] as const;
const INTERRUPTED = ['interrupted', 'interrupted'] as const;
const STEPS: readonly Step[] = [
  { verb: 'ensureConversation', ends: COMPLETES },
  { verb: 'enqueue', ends: COMPLETES },
  { verb: 'claim', ends: COMPLETES },
  { verb: 'commit', write: 'open-session', agent: 'assigned', ends: COMPLETES },
  { verb: 'commit', write: 'send', ends: ['completed', 'interrupted'], ran: [1, 0] },
  { verb: 'commit', write: 'send', agent: 'plain', ends: ['completed', 'interrupted'], ran: [1, 0] },
  { verb: 'commit', write: 'send', second: true, ends: ['completed', 'interrupted'], ran: [1, 0] },
  { verb: 'commit', write: 'send', second: true, agent: 'rotating', ends: ['completed', 'interrupted'], ran: [1, 0] },
  { verb: 'commit', write: 'send', second: true, warm: true, ends: ['completed', 'interrupted'], ran: [1, 0] },
  { verb: 'commit', write: 'turn.update', ends: INTERRUPTED },
  { verb: 'commit', write: 'turn.update', agent: 'forgetful', ends: INTERRUPTED },
  { verb: 'commit', write: 'open-session', agent: 'rotating', ends: INTERRUPTED },
  { verb: 'commit', write: 'ask', ends: INTERRUPTED },
  { verb: 'commit', write: 'deny', ends: INTERRUPTED },
  { verb: 'renew', since: 'turn.update', ends: INTERRUPTED },
  { verb: 'commit', write: 'end', ends: ['interrupted', 'completed'], ran: [1, 1] },
  { verb: 'commit', write: 'end', second: true, ends: ['interrupted', 'completed'], ran: [1, 1] },
  { verb: 'commit', write: 'end', agent: 'forgetful', ends: ['interrupted', 'completed'], ran: [1, 1] },
  { verb: 'nextTurn', ends: COMPLETES },
  { verb: 'release', ends: COMPLETES },
];
const CASES = STEPS.flatMap((step) =>
  (['before', 'after'] as const).map((side) => ({
    ...step,
    agent: step.agent ?? ('survivor' as const),
    side,
    name: `${step.write ?? step.verb}${step.second ? ' of a second turn' : ''}${step.warm ? ', warm,' : ''}`,
  })),
);

/** So long that a lease is freed only because its holder is known to be dead. */
const LEASE_MS = 60_000;

describe('a process that is killed at an exact step', () => {
  test.concurrent.each(CASES)('$side $name leaves turns that end correctly (agent: $agent)', async (step) => {
    await using place = new Place();
    const { verb, side, agent, write, since, second, warm = false } = step;
    const prompt = (name: string) =>
      [
        `The codeword is ${name}.`,
        `/ask May I?`,
        `/tool denied ${place.effects('c')}`,
        // Long, so that updates are committed before the end of the turn, and not together with it.
        `/slow-tool ${name} ${place.effects('c')} ${verb === 'renew' || write === 'turn.update' ? 2_000 : 20}`,
        QUESTION,
      ].join('\n');
    const requests = ['one', 'two'].map((name) => ({
      prompt: prompt(name),
      options: { requestId: name, agent, permissions: 'deny' as const },
    }));
    const hook: Hook = {
      verb,
      side,
      action: 'kill',
      ...(write ? { write } : {}),
      ...(since ? { since } : {}),
      call: second ? 2 : 1,
    };
    const leaseMs = verb === 'renew' ? 300 : LEASE_MS;
    const settings = warm ? { leaseMs, maxWarm: 1 } : { leaseMs, maxWarm: 0 };
    const killed = place.start('stepper', { key: 'c', hook, requests, whenWarm: warm, engine: settings });
    await killed.closed;
    expect(killed.stderr).toBe('');
    if (warm) expect(await place.rows('SELECT n FROM turns')).toHaveLength(2);

    await using engine = await newcomer(place, { leaseMs: LEASE_MS, maxWarm: 0 });
    const ended = [];
    for (const { prompt, options } of requests) ended.push(await engine.run('c', prompt, options));

    const at = side === 'before' ? 0 : 1;
    const end = step.ends[at];
    expect(ended.map(({ state }) => state)).toEqual(second ? ['completed', end] : [end, 'completed']);
    const hit = second ? 'two' : 'one';
    if (step.ran) expect(place.ran('c').filter((name) => name === hit)).toHaveLength(step.ran[at]);
    const asked = await engine.run('c', QUESTION, { agent });
    expect(codewordsIn(asked.reply)).toEqual(requests.map(({ options }) => options.requestId));
    const [facts] = await readFacts(place);
    if (facts === undefined) throw new Error('there is no conversation');
    expect([oneEnd, inOrder, gapless].flatMap((check) => check(facts))).toEqual([]);
    expect(ranOnce({ ...facts, turns: facts.turns.slice(0, -1) })).toEqual([]);
    await until('the agent of the killed process to end', () => marked(place.mark).length === 0);
  });
});
