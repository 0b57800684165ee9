import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { MIGRATIONS } from '../../../src/stores/sqlite/migrations/list.ts';
import { fillHome, schemaOf } from '../../contracts/older-database.ts';
import type { Scenario } from '../harness/figures.ts';
import { World } from '../harness/world.ts';

/** Every schema before the current one. */
export const SCHEMAS = MIGRATIONS.slice(1).map((_, index) => index + 1);

export const upgrades: Scenario = {
  name: 'upgrades',
  does: 'data that older versions have written, of every schema there was: looked at, then upgraded by a server that is killed meanwhile',
  async run({ random, long }) {
    const chosen = long ? SCHEMAS : [random.pick(SCHEMAS)];
    const violations: string[] = [];
    const figures = { schemas: chosen.length, 'kills during an upgrade': 0, 'turns before': 0, 'turns found again': 0 };
    for (const schema of chosen) {
      const fault = (what: string) => violations.push(`schema ${schema}: ${what}`);
      let before: readonly Talk[] = [];
      await using world = await World.start({
        agents: () => ({ ant: { adapter: 'scripted' }, bee: { adapter: 'scripted' } }),
        owners: ['local', 'ann'],
        async prepare(world) {
          const home = join(world.home.path, 'home');
          const file = fillHome(home, schema);
          before = talksIn(file);
          for (const args of [['list'], ['doctor']]) await world.home.run(...args);
          if (schemaOf(file) !== schema) fault('a command that only reads has upgraded it');
          for (let kills = random.whole(1, 2); kills > 0; kills -= 1) {
            world.begin();
            await pause(random.whole(100, 700));
            await world.kill();
          }
        },
      });
      figures['kills during an upgrade'] += world.kills;
      for (const { owner, key, turns, seq } of before) {
        figures['turns before'] += turns;
        const { status, body } = await world.caller(owner).get(`/conversations/${encodeURIComponent(key)}/view`);
        if (status !== 200) {
          fault(`${key} is answered with ${status}`);
          continue;
        }
        figures['turns found again'] += body.turns.length;
        if (body.turns.length !== turns) fault(`${key} had ${turns} turns and has ${body.turns.length}`);
        if (body.conversation.lastSeq < seq) fault(`${key} had ${seq} events and has ${body.conversation.lastSeq}`);
        const { broken } = await world.caller(owner).ok('GET', `/conversations/${encodeURIComponent(key)}/verify`);
        if (broken !== null) fault(`verify of ${key}: ${JSON.stringify(broken)}`);
      }
      const { turn } = await world
        .caller('local')
        .ok('POST', '/conversations/notes/turns', { prompt: 'Which codewords have you seen?' });
      const { reply } = await world.caller('local').finished(turn);
      if (!reply.includes('amber-heron')) fault(`after the upgrade the agent knows: ${reply}`);
      violations.push(...(await world.leftOver()).map((left) => `schema ${schema}: ${left}`));
    }
    return { figures, violations };
  },
};

interface Talk {
  readonly owner: string;
  readonly key: string;
  readonly turns: number;
  readonly seq: number;
}

/** The conversations in the file, read by plain SQL, without our code. */
function talksIn(file: string): Talk[] {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    const sql = `SELECT owner, key, (SELECT count(*) FROM turns t WHERE t.conv = c.no) AS turns,
      (SELECT max(seq) FROM events e WHERE e.conv = c.no) AS seq FROM conversations c WHERE key IS NOT NULL AND key <> 'gone'`;
    return db
      .prepare(sql)
      .all()
      .map((row) => ({ ...row }) as unknown as Talk);
  } finally {
    db.close();
  }
}
