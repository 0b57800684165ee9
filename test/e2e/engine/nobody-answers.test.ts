import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type OnPermission, type OpenOptions, open } from '../../../src/index.ts';
import { effects, event, refusedWith } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const ASK = '/ask May I write?\n/tool write effects.log';
const DENIED = [{ permissionId: expect.any(String), title: 'May I write?', reason: 'nobody can answer here' }];

/** Opens Throughline as a program does that says nothing about who answers. */
async function openProgram(home: Home, more: OpenOptions = {}) {
  const tl = await open({ home: home.path, settings: { agents: { scripted: { adapter: 'scripted' } } }, ...more });
  const chat = tl.conversation('chat');
  const log = async () => join(home.sandboxes, (await chat.get()).id, 'work', 'effects.log');
  return { tl, chat, log, [Symbol.asyncDispose]: () => tl.close({ graceMs: 0 }) };
}

test('a question is denied at once if the program names nobody who answers, and the result says so', async () => {
  await using home = new Home();
  await using program = await openProgram(home);
  const { reply, denied, turn } = await program.chat.ask(ASK);
  expect(reply).toBe('Permission denied: May I write?.');
  expect(denied).toEqual(DENIED);
  expect(effects(await program.log())).toBe(0);
  expect(await program.tl.engine.permissions({ turn: turn.id })).toMatchObject([{ state: 'denied' }]);
  for await (const { kind } of program.chat.send(ASK).events) if (kind === 'permission.denied') return;
  expect.unreachable('the question that was sent was not denied');
});

test('an agent that gives up after such a denial fails the turn, and the hint says what to change', async () => {
  await using home = new Home();
  await using program = await openProgram(home);
  await expect(program.chat.ask('/ask! May I write?')).rejects.toMatchObject({
    code: 'permission_denied',
    hint: expect.stringMatching(/"May I write\?" was denied: nobody can answer here\. .*onPermission/),
  });
});

test('onPermission answers every question of a turn, by the id of an option or by its meaning', async () => {
  await using home = new Home();
  const titles: string[] = [];
  const onPermission = async ({ title }: { title: string }) => {
    titles.push(title);
    return title === 'May I write?' ? 'allow' : 'reject';
  };
  await using program = await openProgram(home, { onPermission });
  const { reply, denied } = await program.chat.ask(`${ASK}\n/ask And delete?\n/tool delete effects.log`);
  expect({ titles, reply, denied }).toEqual({
    titles: ['May I write?', 'And delete?'],
    reply: 'Permission denied: And delete?.',
    denied: [],
  });
  expect(effects(await program.log())).toBe(1);
  // An option of the call takes precedence over the one of open().
  expect((await program.chat.ask(ASK, { onPermission: () => 'deny' })).reply).toContain('Permission denied');
  expect((await program.chat.ask(ASK, { permissions: 'deny' })).denied).toEqual(DENIED);
  expect(titles).toHaveLength(2);
  // It is called also when nobody reads the events.
  const { turn } = await program.chat.send(ASK).accepted;
  await event(program.tl.engine, 'chat', 'turn.ended', { turn: turn.id });
  expect(titles).toHaveLength(3);
});

test.each([
  ['throws', () => Promise.reject(new Error('the dialog broke')), 'the dialog broke'],
  [
    'returns something else than an answer',
    async () => 'perhaps',
    'onPermission returned "perhaps", which is not an answer.',
  ],
])('an onPermission that %s cancels the turn, and the agent gets no answer', async (_, answer, fault) => {
  await using home = new Home();
  await using program = await openProgram(home);
  const error = await program.chat.ask(ASK, { onPermission: answer }).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: 'TurnError', code: 'cancelled', turn: { state: 'cancelled' } });
  expect(error).toMatchObject({ message: expect.stringContaining(fault), cause: { message: fault } });
  expect(effects(await program.log())).toBe(0);
  expect((await program.chat.show()).turns).toMatchObject([{ state: 'cancelled' }]);
});

test('the signal of onPermission aborts when its question is over, and a late answer changes nothing', async () => {
  await using home = new Home();
  await using program = await openProgram(home, { engine: { permissionMs: 2_000 } });
  let aborted = false;
  const onPermission = (_: unknown, { signal }: { signal: AbortSignal }) =>
    new Promise<string>((resolve) => {
      signal.addEventListener('abort', () => {
        aborted = true;
        resolve('allow');
      });
    });
  const { denied } = await program.chat.ask(ASK, { onPermission });
  expect(denied).toMatchObject([{ reason: 'nobody answered within 2 seconds' }]);
  expect(aborted).toBe(true);
  expect(effects(await program.log())).toBe(0);
});

test('an onPermission that throws after somebody else has answered does not end the turn', async () => {
  await using home = new Home();
  await using program = await openProgram(home);
  const permissionId = Promise.withResolvers<string>();
  const onPermission: OnPermission = ({ id }, { signal }) => {
    permissionId.resolve(id);
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  };
  const waiting = program.chat.ask(ASK, { onPermission });
  await program.tl.answer(await permissionId.promise, 'allow');
  expect((await waiting).turn.state).toBe('completed');
  expect(effects(await program.log())).toBe(1);
});

test('with the mode "ask" a question waits for an answer from elsewhere, for as long as the settings say', async () => {
  await using home = new Home();
  const openWithWait = (waitSeconds: number) => {
    const permissions = { mode: 'ask', waitSeconds } as const;
    return openProgram(home, { settings: { agents: { scripted: { adapter: 'scripted' } }, permissions } });
  };
  const waitingLong = await openWithWait(600);
  await waitingLong.chat.ensure();
  const waiting = waitingLong.chat.ask(ASK);
  const { payload } = await event(waitingLong.tl.engine, 'chat', 'permission.asked');
  await waitingLong.tl.engine.answer(payload.permissionId, 'allow');
  expect((await waiting).denied).toEqual([]);
  await waitingLong.tl.close();
  await using program = await openWithWait(1);
  expect((await program.chat.ask(ASK)).denied).toMatchObject([{ reason: 'nobody answered within 1 second' }]);
});

test('onPermission together with the mode "deny" is refused, because it would never be called', async () => {
  await using home = new Home();
  await using program = await openProgram(home);
  const both = { permissions: 'deny', onPermission: () => 'allow' } as const;
  await refusedWith('invalid', program.chat.ask('Hello.', both));
});

test('how questions are handled is fixed when a turn is accepted, also if a process with another default runs it', async () => {
  await using home = new Home();
  await using asking = await openProgram(home, { permissions: 'ask', engine: { maxRunning: 0 }, takeUp: false });
  const { id } = await asking.tl.engine.ensure({ key: 'chat' });
  const first = await asking.tl.engine.submit(id, ASK, { requestId: 'r-1' });
  expect(first.turn.options).toEqual({ permissions: 'ask' });
  await asking.tl.close();
  await using denying = await openProgram(home);
  const { payload } = await event(denying.tl.engine, 'chat', 'permission.asked', { turn: first.turn.id });
  await denying.tl.engine.answer(payload.permissionId, 'allow');
  // The same request from a process with another default is the same turn.
  expect(await denying.tl.engine.submit(id, ASK, { requestId: 'r-1' })).toMatchObject({ duplicate: true });
});
