import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { Random, seedOfRun } from '../faults/harness/random.ts';
import { lineOf, type Ran, type Scenario, tableOf, withFigures, withRows } from './harness/figures.ts';
import { access } from './scenarios/access.ts';
import { bursts } from './scenarios/bursts.ts';
import { damage } from './scenarios/damage.ts';
import { freezes } from './scenarios/freezes.ts';
import { fullDisk } from './scenarios/full-disk.ts';
import { hostile } from './scenarios/hostile.ts';
import { kills } from './scenarios/kills.ts';
import { realAgents } from './scenarios/real-agents.ts';
import { upgrades } from './scenarios/upgrades.ts';

const LONG = process.env.THROUGHLINE_LONG === '1';
const SCENARIOS: readonly Scenario[] = [
  kills,
  freezes,
  access,
  bursts,
  hostile,
  damage,
  fullDisk,
  upgrades,
  realAgents,
].filter(({ onlyLong }: Scenario) => LONG || !onlyLong);
const PAGE = fileURLToPath(new URL('../../docs/reliability.md', import.meta.url));
const LIMIT_MS = LONG ? 1_800_000 : 900_000;

describe('the campaign', () => {
  const seed = seedOfRun();
  const ran: Ran[] = [];
  const [loadBefore = 0] = loadavg();

  for (const scenario of SCENARIOS) {
    test(scenario.name, { timeout: LIMIT_MS }, async (context) => {
      const why = scenario.missing?.() ?? null;
      if (why !== null) context.skip(why);
      const start = performance.now();
      const outcome = await scenario.run({ seed, random: new Random(seed), long: LONG });
      const result = { ...outcome, scenario, seed, long: LONG, seconds: (performance.now() - start) / 1000 };
      ran.push(result);
      console.log(lineOf(result));
      expect(outcome.violations).toEqual([]);
    });
  }

  afterAll(() => {
    if (!LONG || ran.length === 0) return;
    const load = `load average ${loadBefore.toFixed(1)} at the start and ${(loadavg()[0] ?? 0).toFixed(1)} at the end`;
    const table = `On a machine with ${availableParallelism()} cores, ${load}:\n\n${tableOf(ran)}`;
    console.log(table);
    if (process.env.THROUGHLINE_RECORD !== '1') return;
    const page = readFileSync(PAGE, 'utf8');
    const isAll = ran.length === SCENARIOS.length;
    writeFileSync(PAGE, isAll ? withFigures(page, table) : withRows(page, ran));
    if (!isAll) console.log(`Only the rows of ${ran.map(({ scenario }) => scenario.name).join(', ')} were written.`);
  });
});
