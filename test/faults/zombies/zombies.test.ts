import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { AgentName } from '../harness/agents.ts';
import type { Hook } from '../harness/hook.ts';
import { isStopped, marked } from '../harness/marked.ts';
import { newcomer } from '../harness/newcomer.ts';
import { Place } from '../harness/place.ts';
import type { Program } from '../harness/program.ts';
import { until } from '../harness/until.ts';
import { gapless, inOrder, oneEnd, ranOnce } from '../storm/checks.ts';
import { readFacts } from '../storm/facts.ts';
import { codewordsIn, QUESTION } from '../storm/prompts.ts';

/*
 * A worker stands still for longer than its lease: stopped by SIGSTOP, or with its event loop blocked. Another worker takes its conversation
 * over; then the first one continues. It must not write anything under its old epoch, its agent must be gone, and it must recover: give up
 * what it held, and run new turns.
 */
const STANDSTILLS: readonly {
  readonly where: string;
  readonly hook: Omit<Hook, 'action'>;
  readonly agent: AgentName;
  /** How the turn ends after the takeover, and how often its tool has run by then. */
  readonly end: 'completed' | 'interrupted';
  readonly ran: number;
}[] = [
  {
    where: 'right before it records that the prompt is sent',
    hook: { verb: 'commit', write: 'send', side: 'before' },
    agent: 'survivor',
    end: 'completed',
    ran: 1,
  },
  {
    where: 'right after it recorded that the prompt is sent',
    hook: { verb: 'commit', write: 'send', side: 'after' },
    agent: 'survivor',
    end: 'interrupted',
    ran: 0,
  },
  {
    where: 'in the middle of a turn',
    hook: { verb: 'commit', write: 'turn.update', side: 'before' },
    agent: 'survivor',
    end: 'interrupted',
    ran: 1,
  },
  {
    where: 'in the middle of a turn of an agent that stores nothing',
    hook: { verb: 'commit', write: 'turn.update', side: 'before' },
    agent: 'forgetful',
    end: 'interrupted',
    ran: 1,
  },
  {
    where: 'right before it records the end',
    hook: { verb: 'commit', write: 'end', side: 'before' },
    agent: 'survivor',
    end: 'interrupted',
    ran: 1,
  },
];
const CASES = STANDSTILLS.flatMap((standstill) =>
  (['stopped', 'blocked'] as const).map((how) => ({ ...standstill, how })),
);
/** The lease must not end before the worker stands still, also on a busy machine. */
const ENGINE = { leaseMs: 2_500, flushMs: 0 };

/** Waits until it really stands still: it prints the line a moment before, and SIGCONT in between would have no effect. */
async function standsStill(zombie: Program, how: 'stopped' | 'blocked'): Promise<void> {
  await zombie.said('stopped');
  if (how === 'stopped') await until('it is stopped', () => isStopped(zombie.pid));
}

describe('a worker that continues after another has taken its lease', () => {
  test.concurrent.each(CASES)('$how $where ($agent) writes nothing and recovers', async (standstill) => {
    await using place = new Place();
    const { agent, how } = standstill;
    const file = place.effects('c');
    // The agent streams before its tool: when the worker records the first piece, it is in the middle of the turn.
    const prompt = `The codeword is one.\n/stream 2 30\n/tool one ${file}\n/stream 2 30\n${QUESTION}`;
    const goOn = place.file('go-on');
    const hook: Hook = { ...standstill.hook, action: how === 'stopped' ? 'stop' : { block: goOn } };
    const options = { requestId: 'one', agent };
    const zombie = place.start('stepper', { key: 'c', hook, requests: [{ prompt, options }], engine: ENGINE });
    const { turn } = await zombie.said('accepted');
    await standsStill(zombie, how);
    const ran = standstill.end === 'interrupted' ? standstill.ran : 0;
    await until('its agent to have done its work', () => place.ran('c').length >= ran);

    await using taker = await newcomer(place, { ...ENGINE, maxWarm: 0 });
    const two = await taker.run('c', `The codeword is two.\n/tool two ${file}\n${QUESTION}`, {
      requestId: 'two',
      agent,
    });
    expect((await taker.end(String(turn))).state).toBe(standstill.end);
    expect(codewordsIn(two.reply)).toEqual(['one', 'two']);
    const taken = await place.rows<{ count: number }>('SELECT count(*) AS count FROM events WHERE epoch = 1');
    const agents = () => marked(place.mark).filter(({ parent }) => parent === zombie.pid);
    if (standstill.end === 'interrupted') expect(agents(), 'its agent was ended by the taker').toEqual([]);

    if (how === 'stopped') zombie.signal('SIGCONT');
    else writeFileSync(goOn, '');
    // Its interrupted commit must be refused: neither written, nor taken for a repetition of the taker's commit.
    const refusals = standstill.hook.side === 'before' ? ['commit'] : ['commit', 'renew'];
    await until('its stale write to be refused', () =>
      zombie.lines.some(({ refused }) => refusals.includes(String(refused))),
    );
    await until('the agent of the lost conversation to end', () => agents().length === 0);

    zombie.send({
      prompt: `The codeword is three.\n/tool three ${file}\n${QUESTION}`,
      options: { requestId: 'three', agent },
    });
    const three = await until('the zombie to run a turn again', () => zombie.lines.find((line) => line.ended === 3));
    expect(three.outcome).toBe('completed');
    expect(await place.rows('SELECT count(*) AS count FROM events WHERE epoch = 1')).toEqual(taken);
    const [facts] = await readFacts(place);
    if (facts === undefined) throw new Error('there is no conversation');
    expect([oneEnd, inOrder, gapless, ranOnce].flatMap((check) => check(facts))).toEqual([]);
    expect(facts.ran.filter((name) => name === 'one')).toHaveLength(standstill.ran);
    expect(zombie.stderr).toBe('');
  });

  test.concurrent.each(['plain', 'forgetful'] as const)(
    'ends its warm session of %s when its lease was taken',
    async (agent) => {
      await using place = new Place();
      const requests = [{ prompt: 'The codeword is one.', options: { requestId: 'one', agent } }];
      const zombie = place.start('stepper', { key: 'c', requests, engine: ENGINE });
      await zombie.said('ended');
      const [warm] = marked(place.mark);
      expect(warm?.parent).toBe(zombie.pid);
      zombie.send({ stop: true });
      await standsStill(zombie, 'stopped');
      await using taker = await newcomer(place, { ...ENGINE, maxWarm: 0 });
      const two = await taker.run('c', `The codeword is two.\n${QUESTION}`, { agent });
      expect(codewordsIn(two.reply)).toEqual(['one', 'two']);
      zombie.signal('SIGCONT');
      await zombie.said('refused');
      await until('the warm session to end', () => marked(place.mark).length === 0);
      const [facts] = await readFacts(place);
      expect(facts && gapless(facts)).toEqual([]);
      expect(zombie.stderr).toBe('');
    },
  );
});
