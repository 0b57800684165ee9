import { planContinuity } from '../../src/core/restore/continuity.ts';
import { budgetFor } from '../../src/core/restore/fit.ts';
import { DEFAULT_RESTORE } from '../../src/core/restore/restore-settings.ts';
import { renderBlock, renderTurns } from '../../src/core/restore/transcript.ts';
import { recordsWithin } from '../../src/engine/restore/deliver.ts';
import type { RestoreRequest } from '../../src/engine/restore/request.ts';
import type { Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { history } from '../support/history.ts';
import { median, quantile } from '../support/statistics.ts';

/** What happens before a prompt in a long conversation: the plan, and the rendering of the history for a new session. */
const measure: Measure = async ({ quick }) => {
  const turns = quick ? 500 : 10_000;
  await using home = new BenchHome();
  const { engine, parts } = await home.open();
  const conversation = await engine.import(history(turns, 'scripted'), { key: 'long' });
  const { store, agents } = parts;
  const traits = await agents.get('scripted')?.agent.traits(await parts.sandboxes.open('plan', { cwd: null }));
  if (traits === undefined) throw new Error('the scripted agent is missing');

  const plan = async () => {
    const { head, id, owner } = conversation;
    const sessions = await store.sessions(owner, id, { agent: 'scripted', limit: 20 });
    return planContinuity({ head, sessions, live: null, traits, restore: DEFAULT_RESTORE, explicit: null });
  };
  // Only the fields that `recordsWithin` reads.
  const request = {
    held: { conversation, parts },
    settings: DEFAULT_RESTORE,
    traits,
    shrink: 0,
  } as unknown as RestoreRequest;
  const block = async () => {
    const { records, dropped } = await recordsWithin(0, request);
    const { turns: rendered, images } = renderTurns(records);
    const frame = { nonce: 'bench', dropped, images: images.length, unsettled: false };
    return { turns: rendered.length, text: renderBlock(rendered, frame) };
  };

  const alone: number[] = [];
  const together: number[] = [];
  let delivered = await block();
  for (let i = 0; i < (quick ? 5 : 100); i += 1) {
    const start = performance.now();
    await plan();
    const planned = performance.now();
    delivered = await block();
    alone.push(planned - start);
    together.push(performance.now() - start);
  }
  const count = turns.toLocaleString('en');
  return [
    {
      name: `plan for ${count} turns, p50`,
      value: median(alone),
      unit: 'ms',
      target: { kind: 'aim', most: 20 },
      note: `the sessions read, and planContinuity; p99 ${quantile(alone, 0.99).toFixed(2)} ms`,
    },
    {
      name: `plan and transcript block for ${count} turns, p50`,
      value: median(together),
      unit: 'ms',
      target: { kind: 'aim', most: 20 },
      note:
        `also the newest ${delivered.turns} turns read and rendered, ${Math.round(delivered.text.length / 1024)} KB: all that fits ` +
        `into the default budget of ${budgetFor(DEFAULT_RESTORE, traits).tokens.toLocaleString('en')} tokens`,
    },
  ];
};

export default measure;
