// A conversation adopts a session of an ACP agent that sends the history late, or not at all.
import { expect, test } from 'vitest';
import { open } from '../../../../src/index.ts';
import { startModel } from '../../../../src/testing/index.ts';
import { TestSandboxes } from '../../../contracts/agent-sandbox.ts';
import { WHICH_CODEWORDS } from '../../../e2e/support/conversations.ts';
import { smallAgent } from '../../support/acp-agents.ts';

test.for([
  {
    name: 'sends its history after the answer',
    program: ['late'],
    policy: 'required',
    imported: 2,
    unknownBefore: null,
  },
  {
    name: 'sends half of its history after the answer',
    program: ['complete', '{"load":"half late"}'],
    policy: 'required',
    imported: 2,
    unknownBefore: null,
  },
  {
    name: 'cannot send its history',
    program: ['without-load', '{"resume":true}'],
    policy: 'auto',
    imported: 0,
    unknownBefore: 1,
  },
] as const)(
  'adopting a session of an agent that $name imports $imported turns',
  async ({ program, policy, imported, unknownBefore }) => {
    const model = await startModel();
    const sandboxes = new TestSandboxes();
    // Longer than a busy machine delays the agent in the middle of its history.
    const agent = smallAgent(model, sandboxes.root, [...program], { quietMs: 2_000 });
    const cwd = sandboxes.root;
    const homes = await Promise.all(
      ['first', 'second'].map((name) => open({ home: `${sandboxes.root}/${name}`, settings: { agents: { agent } } })),
    );
    try {
      const [first, second] = homes as [(typeof homes)[0], (typeof homes)[0]];
      const theirs = first.conversation('theirs', { cwd });
      await theirs.ask('The codeword is amber.');
      const { turn } = await theirs.ask('The codeword is birch.');
      const session = turn.sessionId ?? expect.unreachable();
      await first.close();
      const ours = second.conversation('ours', { cwd });
      const adopted = await ours.ask(WHICH_CODEWORDS, { session, restore: { policy } });
      expect(adopted.reply).toContain('amber');
      expect(adopted.turn.n).toBe(imported + 1);
      expect(adopted.receipt).toMatchObject({ rung: 'resume', carried: imported, unknownBefore: null });
      const forked = await (await ours.fork()).ask(WHICH_CODEWORDS);
      expect(forked.receipt).toMatchObject({ rung: 'transcript', carried: imported + 1, unknownBefore });
      const { turns } = await ours.show();
      expect(turns.filter((one) => one.imported).map(({ reply }) => reply !== '')).toEqual(Array(imported).fill(true));
    } finally {
      await Promise.all(homes.map((home) => home.close()));
      await sandboxes.dispose();
      await model.close();
    }
  },
);
