import { setTimeout as pause } from 'node:timers/promises';
import { Crowd } from '../harness/crowd.ts';
import type { Scenario } from '../harness/figures.ts';
import { World } from '../harness/world.ts';

/** Every so often the next server is killed as well, while it starts. */
const AT_THE_START = 0.2;

export const kills: Scenario = {
  name: 'kills',
  does: 'the server is killed (SIGKILL) while clients submit and read, also while it starts; agents are killed, readers cut off',
  async run({ seed, random, long }) {
    await using world = await World.start();
    const crowd = new Crowd(world, { seed, clients: long ? 10 : 5 });
    await crowd.begin();
    for (const enough = long ? 64 : 3; world.kills < enough; ) {
      for (let moments = random.whole(1, 12); moments > 0; moments -= 1) {
        await pause(random.whole(10, 200));
        crowd.cut(random);
        if (random.chance(0.08)) world.killAgent((pids) => random.pick(pids));
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
