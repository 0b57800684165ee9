import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type OnPermission, type OpenOptions, open } from '../../../src/index.ts';
import { effects, event, refusedWith } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const ASK = '/ask May I write?\n/tool write effects.log';
const NOBODY = [{ permissionId: expect.any(String), title: 'May I write?', reason: 'nobody can answer here' }];

/** As a program opens it: with nothing said about who answers. */
async function opened(home: Home, more: OpenOptions = {}) {
  const tl = await open({ home: home.path, settings: { agents: { scripted: { adapter: 'scripted' } } }, ...more });
  const chat = tl.conversation('chat');
  const log = async () => join(home.sandboxes, (await chat.get()).id, 'work', 'effects.log');
  return { tl, chat, log, [Symbol.asyncDispose]: () => tl.close({ graceMs: 0 }) };
}

test('a question to a program that has nobody who answers is denied at once, and the result says so', async () => {
  await using home = new Home();
  await using one = await opened(home);
  const { reply, denied, turn } = await one.chat.ask(ASK);
  expect(reply).toBe('Permission denied: May I write?.');
  expect(denied).toEqual(NOBODY);
  expect(effects(await one.log())).toBe(0);
  expect(await one.tl.engine.permissions({ turn: turn.id })).toMatchObject([{ state: 'denied' }]);
  for await (const seen of one.chat.send(ASK).events) if (seen.kind === 'permission.denied') return;
  expect.unreachable('the question that was sent was not denied');
});

test('an agent that gives up because of that fails the turn with what to change', async () => {
  await using home = new Home();
  await using one = await opened(home);
  await expect(one.chat.ask('/ask! May I write?')).rejects.toMatchObject({
    code: 'permission_denied',
    hint: expect.stringMatching(/"May I write\?" was denied: nobody can answer here\. .*onPermission/),
  });
});

test('an answer of the program itself is given, by id or by meaning, to every question of the turn', async () => {
  await using home = new Home();
  const asked: string[] = [];
  const onPermission = async ({ title }: { title: string }) => {
    asked.push(title);
    return title === 'May I write?' ? 'allow' : 'reject';
  };
  await using one = await opened(home, { onPermission });
  const { reply, denied } = await one.chat.ask(`${ASK}\n/ask And delete?\n/tool delete effects.log`);
  expect({ asked, reply, denied }).toEqual({
    asked: ['May I write?', 'And delete?'],
    reply: 'Permission denied: And delete?.',
    denied: [],
  });
  expect(effects(await one.log())).toBe(1);
  // What the call says beats what was said at first.
  expect((await one.chat.ask(ASK, { onPermission: () => 'deny' })).reply).toContain('Permission denied');
  expect((await one.chat.ask(ASK, { permissions: 'deny' })).denied).toEqual(NOBODY);
  expect(asked).toHaveLength(2);
  // Also when nobody iterates the events.
  const { turn } = await one.chat.send(ASK).accepted;
  await event(one.tl.engine, 'chat', 'turn.ended', { turn: turn.id });
  expect(asked).toHaveLength(3);
});

test.each([
  ['throws', () => Promise.reject(new Error('the dialog broke')), 'the dialog broke'],
  ['returns no answer', async () => 'perhaps', 'onPermission returned "perhaps", which is not an answer.'],
])(
  'a function that %s ends the turn: the agent does not continue on an answer that nobody gave',
  async (_, answer, fault) => {
    await using home = new Home();
    await using one = await opened(home);
    const error = await one.chat.ask(ASK, { onPermission: answer }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'TurnError', code: 'cancelled', turn: { state: 'cancelled' } });
    expect(error).toMatchObject({ message: expect.stringContaining(fault), cause: { message: fault } });
    expect(effects(await one.log())).toBe(0);
    expect((await one.chat.show()).turns).toMatchObject([{ state: 'cancelled' }]);
  },
);

test('a function is told when its question is over, and its late answer changes nothing', async () => {
  await using home = new Home();
  await using one = await opened(home, { engine: { permissionMs: 2_000 } });
  let over = false;
  const onPermission = (_: unknown, { signal }: { signal: AbortSignal }) =>
    new Promise<string>((resolve) => {
      signal.addEventListener('abort', () => {
        over = true;
        resolve('allow');
      });
    });
  const { denied } = await one.chat.ask(ASK, { onPermission });
  expect(denied).toMatchObject([{ reason: 'nobody answered within 2 seconds' }]);
  expect(over).toBe(true);
  expect(effects(await one.log())).toBe(0);
});

test('a function that throws because its question is over ends nothing: somebody else has answered', async () => {
  await using home = new Home();
  await using one = await opened(home);
  const asked = Promise.withResolvers<string>();
  const onPermission: OnPermission = ({ id }, { signal }) => {
    asked.resolve(id);
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  };
  const waiting = one.chat.ask(ASK, { onPermission });
  await one.tl.answer(await asked.promise, 'allow');
  expect((await waiting).turn.state).toBe('completed');
  expect(effects(await one.log())).toBe(1);
});

test('whoever else answers is waited for when the program asks for that, as long as the settings say', async () => {
  await using home = new Home();
  const waits = (waitSeconds: number) => {
    const permissions = { mode: 'ask', waitSeconds } as const;
    return opened(home, { settings: { agents: { scripted: { adapter: 'scripted' } }, permissions } });
  };
  const patient = await waits(600);
  await patient.chat.ensure();
  const waiting = patient.chat.ask(ASK);
  const { payload } = await event(patient.tl.engine, 'chat', 'permission.asked');
  await patient.tl.engine.answer(payload.permissionId, 'allow');
  expect((await waiting).denied).toEqual([]);
  await patient.tl.close();
  await using one = await waits(1);
  expect((await one.chat.ask(ASK)).denied).toMatchObject([{ reason: 'nobody answered within 1 second' }]);
});

test('a function that would never be called is refused', async () => {
  await using home = new Home();
  await using one = await opened(home);
  const both = { permissions: 'deny', onPermission: () => 'allow' } as const;
  await refusedWith('invalid', one.chat.ask('Hello.', both));
});

test('how questions are handled is fixed when a turn is accepted: whoever runs it later does the same', async () => {
  await using home = new Home();
  await using asking = await opened(home, { permissions: 'ask', engine: { maxRunning: 0 }, takeUp: false });
  const { id } = await asking.tl.engine.ensure({ key: 'chat' });
  const first = await asking.tl.engine.submit(id, ASK, { requestId: 'r-1' });
  expect(first.turn.options).toEqual({ permissions: 'ask' });
  await asking.tl.close();
  await using denying = await opened(home);
  const { payload } = await event(denying.tl.engine, 'chat', 'permission.asked', { turn: first.turn.id });
  await denying.tl.engine.answer(payload.permissionId, 'allow');
  // The same request from a process with another default is the same turn.
  expect(await denying.tl.engine.submit(id, ASK, { requestId: 'r-1' })).toMatchObject({ duplicate: true });
});
