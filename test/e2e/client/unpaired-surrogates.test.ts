// An unpaired surrogate is refused in every text of a caller, and replaced by U+FFFD in the texts of an agent.
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
import { reachBy, type Way } from '../support/way.ts';

const UNPAIRED = 'ab\ud83d';
const WITH_INDEX = /contains an unpaired surrogate, U\+D83D at index 2\./;

/** Every call that stores a text of its caller, or searches with it. */
const CALLS: Readonly<Record<string, (engine: Engine, tasks: Tasks) => Promise<unknown>>> = {
  'a prompt': (engine) => engine.submit('chat', UNPAIRED),
  'a block': (engine) => engine.submit('chat', [{ type: 'text', text: UNPAIRED }]),
  'a resource': (engine) =>
    engine.submit('chat', [{ type: 'resource', resource: { uri: 'file:///a', text: UNPAIRED } }]),
  'a request id': (engine) => engine.submit('chat', 'hello', { requestId: UNPAIRED }),
  'a session id': (engine) => engine.submit('chat', 'hello', { session: UNPAIRED }),
  'the request id of a retry': async (engine) =>
    engine.retry((await run(engine, 'chat', 'hello')).turn.id, { requestId: UNPAIRED }),
  'a key': (engine) => engine.ensure({ key: UNPAIRED }),
  'the key of a first prompt': (engine) => engine.submit(UNPAIRED, 'hello'),
  'a title': (engine) => engine.ensure({ key: 'new', title: UNPAIRED }),
  'a sandbox': (engine) => engine.ensure({ key: 'new', sandbox: UNPAIRED }),
  'a directory': (engine) => engine.ensure({ key: 'new', cwd: `/${UNPAIRED.slice(1)}` }),
  'a new title': (engine) => engine.rename('chat', UNPAIRED),
  'the key of a fork': async (engine) =>
    engine.fork((await run(engine, 'chat', 'hello')).turn.conversationId, { key: UNPAIRED }),
  'the key of an import': async (engine) => engine.import(await engine.export('chat'), { key: UNPAIRED }),
  'a search': (engine) => engine.search(UNPAIRED),
  'a goal': (_, tasks) => tasks.add({ goal: UNPAIRED }),
  'a gate': (_, tasks) => tasks.add({ goal: 'go', gate: UNPAIRED }),
  'the name of a task': (_, tasks) => tasks.add({ goal: 'go', name: UNPAIRED }),
  'the request id of a plan': (_, tasks) => tasks.add({ goal: 'go' }, { requestId: UNPAIRED }),
  'what a task is told': (_, tasks) => tasks.retry('none', { say: UNPAIRED }),
};

describe.each<Way>(['embedded', 'tcp'])('%s: an unpaired surrogate', (way) => {
  let home: Home;
  beforeAll(async () => {
    reachBy(way);
    home = new Home();
  });
  afterAll(async () => {
    await home[Symbol.asyncDispose]();
    reachBy('embedded');
  });

  test.each(Object.keys(CALLS))('in %s is refused with its index', async (name) => {
    const { engine, tasks } = await home.open();
    await engine.ensure({ key: 'chat' });
    await refusedWith('invalid', CALLS[name]?.(engine, tasks) ?? Promise.resolve(), WITH_INDEX);
    expect(await tasks.list()).toEqual([]);
  });

  test('in a name does not find a name with U+FFFD instead', async () => {
    const { engine } = await home.open();
    await engine.ensure({ key: 'ab\ufffd' });
    await refusedWith('not_found', engine.show(UNPAIRED), /There is no conversation/);
    await refusedWith('not_found', engine.verify(UNPAIRED), /There is no conversation/);
  });
});

test('an escaped unpaired surrogate in an HTTP body is refused with its index, and nothing is stored', async () => {
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
    detail: expect.stringMatching(WITH_INDEX),
  });
  expect((await home.caller.ok('GET', '/conversations/chat/turns')).turns).toEqual([]);
});

test('files with an unpaired surrogate are refused by the command line, with its index', async () => {
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
      expect({ args, code, stderr }).toEqual({ args, code: 2, stderr: expect.stringMatching(WITH_INDEX) });
    }
    const { code, stderr } = await home.start(['send', 'odd', 'Hello', '--agent', 'a'], {
      env: { THROUGHLINE_CONFIG: settings },
    }).ended;
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/agents\.a\.env\.A.*U\+D83D at index 2/),
    });
  } finally {
    await home.remove();
  }
});

test('an unpaired surrogate of an agent is stored as U+FFFD, and a pair that comes in two chunks is joined', async () => {
  const chunk = (text: string): AgentEvent => {
    return { type: 'update', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } };
  };
  const unpaired = '\ud83d';
  const events: AgentEvent[] = [
    chunk(`one ${unpaired}`),
    chunk('\ude00 two'),
    {
      type: 'update',
      update: { sessionUpdate: 'tool_call', toolCallId: `t${unpaired}`, title: unpaired, rawOutput: [unpaired] },
    },
    { type: 'update', update: { sessionUpdate: 'session_info_update', title: `Title ${unpaired}` } },
    { type: 'permission', id: 'p', title: `May I ${unpaired}?`, toolCall: { title: unpaired }, options: [] },
    chunk(`three ${unpaired}`),
    { type: 'ended', outcome: { kind: 'failed', code: 'agent_failed', message: `no ${unpaired}`, again: false } },
  ];
  const withTheseEvents = (agent: Agent) =>
    changedOpen(
      agent,
      (session) =>
        changedPrompt(session, async function* () {
          yield* events;
        }),
      () => true,
    );
  await using home = new Home();
  const engine = await home.engine({ agent: withTheseEvents });
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
