import { join } from 'node:path';
import { claudeCliAgent } from '../../src/agents/claude/cli/adapter.ts';
import { DEFAULT_RESTORE } from '../../src/core/restore/restore-settings.ts';
import { systemClock } from '../../src/host/clock.ts';
import { processesAt } from '../../src/host/processes.ts';
import type { Engine } from '../../src/ports/engine.ts';
import { sshSandboxes } from '../../src/sandboxes/ssh/ssh-sandboxes.ts';
import { packageFolder } from '../../test/agents/support/claude.ts';
import { startSshd, whyNoSshd } from '../../test/contracts/sandbox/sshd.ts';
import type { Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { ClaudeBench } from '../support/claude-bench.ts';
import { history } from '../support/history.ts';
import { median } from '../support/statistics.ts';
import { TurnWatch } from '../support/turn-watch.ts';

/** Enough for the whole history, however its tokens are estimated. */
const RESTORE = { ...DEFAULT_RESTORE, budgetTokens: 1_000_000 };

/**
 * A long conversation that Claude does not have: its transcript is written from our records, and resumed. Once locally, and once over ssh
 * to this same machine, so that only the connection differs. The two alternate.
 */
const measure: Measure = async ({ quick }) => {
  const why = whyNoSshd();
  if (why !== null) {
    console.error(`claude-ssh is skipped: ${why}`);
    return [];
  }
  await using bench = await ClaudeBench.start('claude-ssh');
  if (bench === null) return [];
  await using sshd = await startSshd();
  await using there = new BenchHome();
  const turns = quick ? 20 : 500;
  const plain = history(turns, 'claude');
  const exported = { ...plain, conversation: { ...plain.conversation, restore: RESTORE } };
  const options = () => ({
    agent: claudeCliAgent({
      name: 'claude',
      package: packageFolder,
      env: bench.env,
      options: {},
      installed: '',
      memory: join(there.path, 'learnt'),
      clock: systemClock,
    }),
    engine: { maxWarm: 0 },
  });
  const { engine: here } = await bench.home.open(options());
  const sandboxes = () => sshSandboxes({ ...sshd.settings, processes: processesAt(sshd.settings.place) });
  const { engine: elsewhere } = await there.open({ ...options(), sandboxes });

  const restored = async (engine: Engine, key: string): Promise<number> => {
    const { id, lastSeq } = await engine.import(exported, { key, cwd: bench.directory(key) });
    const watch = new TurnWatch(engine, id, lastSeq);
    const start = performance.now();
    const { turn } = await engine.submit(id, 'model: say Hello.');
    const first = (await watch.first(turn.id)) - start;
    await watch.ended(turn.id);
    await watch.stop();
    const { receipt } = await engine.answerOf(turn.id);
    if (receipt?.rung !== 'rehydrate' || receipt.carried !== turns) throw new Error(JSON.stringify(receipt));
    return first;
  };

  // Not measured: the first turn connects, and probes what Claude can do.
  await restored(here, 'first-here');
  await restored(elsewhere, 'first-there');
  const times = { here: [] as number[], there: [] as number[] };
  for (let i = 0; i < (quick ? 2 : 12); i += 1) {
    times.here.push(await restored(here, `here-${i}`));
    times.there.push(await restored(elsewhere, `there-${i}`));
  }
  const [local, remote] = [median(times.here), median(times.there)];
  return [
    {
      name: `Claude: ${turns} turns restored by rehydration over ssh ÷ on this machine, p50`,
      value: remote / local,
      unit: '×',
      target: { kind: 'aim', most: 1.5 },
      note: `${remote.toFixed(0)} and ${local.toFixed(0)} ms from the prompt to the first of the answer; a real sshd on the loopback, on an open connection`,
    },
  ];
};

export default measure;
