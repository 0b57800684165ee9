// Sessions of ACP agents that a conversation adopts: what the agent repeats late, and what it does not repeat at all.
import { expect, test } from 'vitest';
import { open } from '../../../../src/index.ts';
import { startModel } from '../../../../src/testing/index.ts';
import { TestSandboxes } from '../../../contracts/agent-sandbox.ts';
import { ownAgent } from '../../support/acp-agents.ts';

const RECALL = 'Which codewords have you seen?';

test.for([
  { name: 'repeats it after its answer', program: ['late'], policy: 'required', imported: 2, unknownBefore: null },
  {
    name: 'repeats half of it after its answer',
    program: ['honest', '{"load":"half late"}'],
    policy: 'required',
    imported: 2,
    unknownBefore: null,
  },
  { name: 'only resumes', program: ['without-load', '{"resume":true}'], policy: 'auto', imported: 0, unknownBefore: 1 },
] as const)('a session of an agent that $name', async ({ program, policy, imported, unknownBefore }) => {
  const model = await startModel();
  const places = new TestSandboxes();
  // Longer than a busy machine pauses the agent in the middle of what it repeats.
  const agent = ownAgent(model, places.root, [...program], { quietMs: 2_000 });
  const work = places.root;
  const homes = await Promise.all(
    ['first', 'second'].map((name) => open({ home: `${places.root}/${name}`, settings: { agents: { agent } } })),
  );
  try {
    const [first, second] = homes as [(typeof homes)[0], (typeof homes)[0]];
    const theirs = first.conversation('theirs', { cwd: work });
    await theirs.ask('The codeword is amber.');
    const { turn } = await theirs.ask('The codeword is birch.');
    const session = turn.sessionId ?? expect.unreachable();
    await first.close();
    const ours = second.conversation('ours', { cwd: work });
    const adopted = await ours.ask(RECALL, { session, restore: { policy } });
    expect(adopted.reply).toContain('amber');
    expect(adopted.turn.n).toBe(imported + 1);
    expect(adopted.receipt).toMatchObject({ rung: 'resume', carried: imported, unknownBefore: null });
    const forked = await (await ours.fork()).ask(RECALL);
    expect(forked.receipt).toMatchObject({ rung: 'transcript', carried: imported + 1, unknownBefore });
    const { turns } = await ours.show();
    expect(turns.filter((one) => one.imported).map(({ reply }) => reply !== '')).toEqual(Array(imported).fill(true));
  } finally {
    await Promise.all(homes.map((home) => home.close()));
    await places.dispose();
    await model.close();
  }
});
