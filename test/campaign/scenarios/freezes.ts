import { setTimeout as pause } from 'node:timers/promises';
import { Crowd } from '../harness/crowd.ts';
import type { Scenario } from '../harness/figures.ts';
import { World } from '../harness/world.ts';

/** Longer than the server's leases (15 s): others take its conversations over, and it must write nothing when it continues. */
const BEYOND_LEASES_MS = 18_000;

export const freezes: Scenario = {
  name: 'freezes',
  does: 'the server is frozen (SIGSTOP) and continues, also after its leases have expired and commands have taken over; agents are frozen',
  async run({ seed, random, long }) {
    await using world = await World.start();
    const crowd = new Crowd(world, { seed, clients: long ? 10 : 5 });
    await crowd.begin();
    for (const enough = long ? 16 : 2; world.freezes < enough; ) {
      for (let moments = random.whole(1, 6); moments > 0; moments -= 1) {
        await pause(random.whole(10, 200));
        crowd.cut(random);
      }
      const [agent] = world.agents();
      if (agent !== undefined && random.chance(0.3)) await world.freezeAgent(agent, random.whole(200, 1_000));
      await world.freeze(long && world.freezes % 8 === 7 ? BEYOND_LEASES_MS : random.whole(200, long ? 3_000 : 800));
    }
    await crowd.calm();
    const { figures, violations } = await crowd.outcome();
    return {
      figures: { 'server freezes': world.freezes, 'agent freezes': world.agentFreezes, ...figures },
      violations,
    };
  },
};
