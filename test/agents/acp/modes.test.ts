// A mode that the agent does not have: the message says which there are, and the hint names the setting.
import { expect, test } from 'vitest';
import { ended } from '../../e2e/support/conversations.ts';
import { smallAgent } from '../support/acp-agents.ts';
import { AcpHome } from '../support/acp-home.ts';
import { FIRST } from '../support/agent-home.ts';

const NO_MODE = /this agent has no mode "nope"; it has: usual, quiet/;

test.each([
  ['mode', { mode: 'nope' }, NO_MODE],
  ['config', { config: { speed: 'x' } }, /this agent has no config option "speed"/],
  ['directories', { directories: ['/tmp'] }, /does not support additional directories/],
] as const)(
  'the option "%s" of an agent that does not have it is named, also for a restore',
  async (name, options, why) => {
    await using home = await AcpHome.make({
      agent: (model, root) => smallAgent(model, root, ['complete']),
      other: (model, root) => smallAgent(model, root, ['complete'], options),
    });
    const tl = await home.open();
    await tl.conversation('chat').ask(FIRST, { agent: 'agent' });
    for (const key of ['chat', 'empty']) {
      const { turn } = await tl.conversation(key).send('Hello.', { agent: 'other' }).accepted;
      const { failure } = await ended(tl.engine, turn);
      expect(failure?.message).toMatch(why);
      expect(failure?.hint).toContain(`"${name}"`);
      expect(failure?.hint).not.toMatch(/budget|policy|rung/);
    }
  },
);

test('the mode of a turn is refused when the turn is accepted, once the agent has said which modes it has', async () => {
  await using home = await AcpHome.make({ agent: (model, root) => smallAgent(model, root, ['complete']) });
  const tl = await home.open();
  const chat = tl.conversation('chat');
  // Nothing is known before its first session.
  const { turn } = await chat.send(FIRST, { mode: 'nope' }).accepted;
  expect((await ended(tl.engine, turn)).failure).toMatchObject({
    code: 'refused',
    message: expect.stringMatching(NO_MODE),
    hint: 'Nothing was sent. Choose another value, or leave out "mode".',
  });
  await chat.ask(FIRST);
  await expect(tl.engine.submit('chat', 'Never stored.', { mode: 'nope' })).rejects.toMatchObject({
    code: 'refused',
    message: expect.stringMatching(NO_MODE),
    hint: 'Nothing was sent. Choose another value, or leave out "mode".',
  });
  expect(await chat.turns()).toHaveLength(2);
  await chat.ask('Quietly.', { mode: 'quiet' });
});
