import { setTimeout as delay } from 'node:timers/promises';
import { systemProcesses } from '../../src/host/processes.ts';
import { directorySandboxes } from '../../src/sandboxes/directory/directory-sandboxes.ts';
import { openPostgresStore } from '../../src/stores/postgres/store.ts';
import { BenchHome } from '../support/bench-home.ts';
import { inProcessAgent, said } from '../support/in-process-agent.ts';
import { type Contender, PROMPT, REPLY } from './contender.ts';

/**
 * Throughline, as a server runs it: every worker claims turns of every conversation, and keeps its sessions warm. A test double answers in
 * this process. The number of connections is the default.
 */
const contender: Contender = {
  async prepare(url) {
    await (await openPostgresStore({ url })).close();
  },
  async open({ url, atOnce, waitMs, folder }) {
    const home = new BenchHome();
    const agent = inProcessAgent(async function* () {
      if (waitMs > 0) await delay(waitMs);
      yield said(REPLY);
    });
    const { engine } = home.openOn(await openPostgresStore({ url }), {
      agent,
      sandboxes: () => directorySandboxes({ root: folder, place: 'team', processes: systemProcesses }),
      engine: { claims: 'all', maxRunning: atOnce, maxWarm: 2_000 },
    });
    return {
      async submit(conversation) {
        await engine.submit(conversation, PROMPT);
      },
      stop: () => home[Symbol.asyncDispose](),
    };
  },
  left: 'SELECT count(*)::int AS left FROM turns WHERE ended_at IS NULL',
  kept: `
    SELECT count(*)::int AS kept FROM (
      SELECT t.n, row_number() OVER (PARTITION BY e.conv ORDER BY e.seq) AS place
      FROM events e JOIN turns t ON t.no = e.turn JOIN records r ON r.turn = t.no WHERE e.kind = 'turn.ended' AND t.state = 'completed'
    ) ended WHERE n = place`,
};

export default contender;
