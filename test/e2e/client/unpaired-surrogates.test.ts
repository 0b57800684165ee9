// Half of a character: refused in what callers give, whatever the door; replaced in what agents say.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Agent, AgentEvent } from '../../../src/ports/agent.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import type { Tasks } from '../../../src/ports/tasks.ts';
import { CliHome } from '../cli/process.ts';
import { ServedHome, TOKEN } from '../http/support/served-home.ts';
import { changedOpen, changedPrompt } from '../support/changed-agent.ts';
import { allEvents, ended, refusedWith, run } from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { reachBy, type Way } from '../support/served.ts';

const HALF = 'ab\ud83d';
const WHERE = /contains an unpaired surrogate, U\+D83D at index 2\./;

/** Every call that takes a text from a caller and stores it, or looks for what has that name. */
const DOORS: Readonly<Record<string, (engine: Engine, tasks: Tasks) => Promise<unknown>>> = {
  'a prompt': (engine) => engine.submit('chat', HALF),
  'a block': (engine) => engine.submit('chat', [{ type: 'text', text: HALF }]),
  'a resource': (engine) => engine.submit('chat', [{ type: 'resource', resource: { uri: 'file:///a', text: HALF } }]),
  'a request id': (engine) => engine.submit('chat', 'hello', { requestId: HALF }),
  'a session id': (engine) => engine.submit('chat', 'hello', { session: HALF }),
  'the request id of a retry': async (engine) =>
    engine.retry((await run(engine, 'chat', 'hello')).turn.id, { requestId: HALF }),
  'a key': (engine) => engine.ensure({ key: HALF }),
  'the key of a first prompt': (engine) => engine.submit(HALF, 'hello'),
  'a title': (engine) => engine.ensure({ key: 'new', title: HALF }),
  'a sandbox': (engine) => engine.ensure({ key: 'new', sandbox: HALF }),
  'a directory': (engine) => engine.ensure({ key: 'new', cwd: `/${HALF.slice(1)}` }),
  'a new title': (engine) => engine.rename('chat', HALF),
  'the key of a fork': async (engine) =>
    engine.fork((await run(engine, 'chat', 'hello')).turn.conversationId, { key: HALF }),
  'the key of an import': async (engine) => engine.import(await engine.export('chat'), { key: HALF }),
  'a search': (engine) => engine.search(HALF),
  'a goal': (_, tasks) => tasks.add({ goal: HALF }),
  'a gate': (_, tasks) => tasks.add({ goal: 'go', gate: HALF }),
  'the name of a task': (_, tasks) => tasks.add({ goal: 'go', name: HALF }),
  'the request id of a plan': (_, tasks) => tasks.add({ goal: 'go' }, { requestId: HALF }),
  'what a task is told': (_, tasks) => tasks.retry('none', { say: HALF }),
};

describe.each<Way>(['embedded', 'tcp'])('%s', (way) => {
  let home: Home;
  beforeAll(async () => {
    reachBy(way);
    home = new Home();
  });
  afterAll(() => home[Symbol.asyncDispose]());

  test.each(Object.keys(DOORS))('%s is refused with the place', async (door) => {
    const { engine, tasks } = await home.open();
    await engine.ensure({ key: 'chat' });
    await refusedWith('invalid', DOORS[door]?.(engine, tasks) ?? Promise.resolve(), WHERE);
    expect(await tasks.list()).toEqual([]);
  });

  test('a name finds nothing that has U+FFFD in its place', async () => {
    const { engine } = await home.open();
    await engine.ensure({ key: 'ab\ufffd' });
    await refusedWith('not_found', engine.show(HALF), /There is no conversation/);
    await refusedWith('not_found', engine.verify(HALF), /There is no conversation/);
  });
});

test('an HTTP body in which it is escaped is refused with the place, and nothing is stored', async () => {
  await using home = await ServedHome.start();
  await home.caller.ok('POST', '/conversations', { key: 'chat' });
  const response = await fetch(`${home.url}/v1/conversations/chat/turns`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: String.raw`{"prompt":[{"type":"text","text":"ab\ud83d"}]}`,
  });
  expect({ status: response.status, ...((await response.json()) as object) }).toMatchObject({
    status: 400,
    code: 'invalid',
    detail: expect.stringMatching(WHERE),
  });
  expect((await home.caller.ok('GET', '/conversations/chat/turns')).turns).toEqual([]);
});

test('files that the command line reads are refused with the place', async () => {
  const home = new CliHome();
  try {
    const file = (name: string, text: string) => {
      const path = join(home.path, name);
      writeFileSync(path, text);
      return path;
    };
    await home.ok('send', 'chat', 'hello');
    const exported = await home.ok('export', 'chat');
    const imported = file('export.json', exported.replaceAll('"hello"', String.raw`"ab\ud83d"`));
    const plan = file('tasks.json', String.raw`{"tasks":[{"goal":"ab\ud83d"}]}`);
    const settings = file('odd.json', String.raw`{"agents":{"a":{"adapter":"scripted","env":{"A":"ab\ud83d"}}}}`);
    for (const args of [
      ['import', imported, '--key', 'copy'],
      ['task', 'run', '--file', plan],
    ]) {
      const { code, stderr } = await home.run(...args);
      expect({ args, code, stderr }).toEqual({ args, code: 2, stderr: expect.stringMatching(WHERE) });
    }
    const { code, stderr } = await home.start(['list'], { env: { THROUGHLINE_CONFIG: settings } }).ended;
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/agents\.a\.env\.A.*U\+D83D at index 2/),
    });
  } finally {
    home.remove();
  }
});

test('what an agent says is stored with U+FFFD, and a character that comes in two halves is whole', async () => {
  reachBy('embedded');
  const chunk = (text: string): AgentEvent => {
    return { type: 'update', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } };
  };
  const half = '\ud83d';
  const says: AgentEvent[] = [
    chunk(`one ${half}`),
    chunk('\ude00 two'),
    { type: 'update', update: { sessionUpdate: 'tool_call', toolCallId: `t${half}`, title: half, rawOutput: [half] } },
    { type: 'update', update: { sessionUpdate: 'session_info_update', title: `Title ${half}` } },
    { type: 'permission', id: 'p', title: `May I ${half}?`, toolCall: { title: half }, options: [] },
    chunk(`three ${half}`),
    { type: 'ended', outcome: { kind: 'failed', code: 'agent_failed', message: `no ${half}`, again: false } },
  ];
  const double = (agent: Agent) =>
    changedOpen(
      agent,
      (session) =>
        changedPrompt(session, async function* () {
          yield* says;
        }),
      () => true,
    );
  await using home = new Home();
  const engine = await home.engine({ agent: double });
  await engine.ensure({ key: 'chat' });
  const { turn } = await engine.submit('chat', 'hello', { permissions: 'deny' });
  expect(await ended(engine, turn)).toMatchObject({ state: 'failed', failure: { message: 'no \ufffd' } });
  expect((await engine.answerOf(turn.id)).reply).toBe('one 😀 two\n\nthree \ufffd');
  const everything = JSON.stringify([
    await engine.export('chat'),
    await allEvents(engine, 'chat'),
    await engine.permissions(),
    await engine.conversation('chat'),
  ]);
  expect(everything).not.toMatch(/\\ud8/i);
  expect(everything).toContain('May I \ufffd?');
});
