import { setTimeout as pause } from 'node:timers/promises';
import { Crowd } from '../harness/crowd.ts';
import type { Scenario } from '../harness/figures.ts';
import { World } from '../harness/world.ts';

/** How often the next server is killed as well, while it starts. */
const AT_THE_START = 0.2;
/** The longest time between the start of a server and its kill. */
const LONGEST_MS = 4_000;

export const kills: Scenario = {
  name: 'kills',
  does: 'the server is killed (SIGKILL) while clients submit and read, also while it starts; agents are killed, readers cut off',
  async run({ seed, random, long }) {
    await using world = await World.start();
    const crowd = new Crowd(world, { seed, clients: long ? 10 : 5 });
    await crowd.begin();
    while (world.kills < (long ? 64 : 3)) {
      // By the number of acknowledged requests, not by time: on a busy machine a server would be killed before it accepts anything.
      const enough = crowd.acknowledged + random.whole(1, long ? 40 : 8);
      const end = performance.now() + LONGEST_MS;
      while (crowd.acknowledged < enough && performance.now() < end) {
        await pause(random.whole(10, 200));
        crowd.cut(random);
        if (random.chance(0.05)) world.killAgent((pids) => random.pick(pids));
      }
      await world.kill();
      world.begin();
      if (random.chance(AT_THE_START)) {
        await pause(random.whole(50, 600));
        await world.kill();
        world.begin();
      }
      await world.served();
    }
    await crowd.calm();
    const { figures, violations } = await crowd.outcome();
    return { figures: { 'server kills': world.kills, 'agent kills': world.agentKills, ...figures }, violations };
  },
};
