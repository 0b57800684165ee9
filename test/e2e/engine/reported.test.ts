import { expect, test } from 'vitest';
import type { Update } from '../../../src/core/turn/update.ts';
import type { AgentSession } from '../../../src/ports/agent.ts';
import { changedOpen, changedPrompt } from '../support/changed-agent.ts';
import { ended } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

test('a session says how full its context was when its agent last reported it', async () => {
  await using home = new Home();
  // As the agent reports it: before its answer, and at its end. What is no number is not kept.
  const reports = [
    [
      { used: 10, size: 200 },
      { used: 120, size: 200 },
    ],
    [],
    [{ used: 5 }, { used: -1, size: 200 }],
  ];
  const reporting = (session: AgentSession) =>
    changedPrompt(session, async function* (prompt) {
      for (const report of reports.shift() ?? []) {
        yield { type: 'update', update: { sessionUpdate: 'usage_update', ...report } as Update };
      }
      yield* session.prompt(prompt);
    });
  const engine = await home.engine({ agent: (agent) => changedOpen(agent, reporting, () => true) });
  const contextAfter = async (text: string) => {
    const { turn } = await engine.submit('chat', text);
    await ended(engine, turn);
    return (await engine.sessions('chat'))[0]?.context;
  };
  expect(await contextAfter('Hello.')).toEqual({ used: 120, size: 200 });
  const told = (await engine.events('chat')).filter(({ kind }) => kind === 'turn.update');
  expect(told.map(({ payload }) => payload)).toContainEqual(
    expect.objectContaining({ update: { sessionUpdate: 'usage_update', used: 120, size: 200 } }),
  );
  expect(await contextAfter('And now?')).toEqual({ used: 120, size: 200 });
  expect(await contextAfter('And then?')).toEqual({ used: 120, size: 200 });
});

test('the list of agents has what each announced in an earlier conversation, also for the next process', async () => {
  await using home = new Home();
  const models = {
    sessionUpdate: 'config_option_update',
    configOptions: [{ id: 'model', currentValue: 'a' }],
  } as Update;
  const announcing = (session: AgentSession) =>
    changedPrompt(session, async function* (prompt) {
      yield { type: 'update', update: models };
      yield* session.prompt(prompt);
    });
  const engine = await home.engine({ agent: (agent) => changedOpen(agent, announcing, () => true) });
  expect((await engine.agents())[0]?.announced).toEqual([]);
  const { turn } = await engine.submit('chat', 'Hello.');
  await ended(engine, turn);
  expect((await engine.agents())[0]?.announced).toEqual([models]);
  expect((await (await home.open()).agents())[0]?.announced).toEqual([models]);
});
