import { expect, test } from 'vitest';
import type { Store } from '../../../src/ports/store.ts';
import { newKey } from './keys.ts';
import {
  ANN,
  BOB,
  beginNext,
  begun,
  codeOf,
  ending,
  enqueue,
  fresh,
  newTurn,
  opening,
  receipt,
  sending,
  session,
  spec,
  update,
  usage,
  WORKER,
  type World,
} from './world.ts';

/** Calls every verb that takes an owner, as Bob, on what belongs to Ann. */
const VERBS: Record<string, (store: Store, anns: Anns) => Promise<unknown>> = {
  findConversation: (store, { conversation }) => store.findConversation(BOB, conversation),
  'findConversation by key': (store) => store.findConversation(BOB, 'anns-key'),
  listConversations: (store) => store.listConversations(BOB, { limit: 9 }),
  setTitle: (store, { conversation }) => store.setTitle(BOB, conversation, 'Stolen', 'caller'),
  eraseConversation: (store, { conversation }) => store.eraseConversation(BOB, conversation),
  fork: (store, { conversation }) => store.fork(BOB, conversation, 1, spec()),
  enqueue: (store, { conversation }) => store.enqueue(BOB, newTurn(conversation)),
  requestCancel: (store, { open }) => store.requestCancel(BOB, open, 'bob'),
  answer: (store, { permission }) => store.answer(BOB, permission, 'yes', 'bob'),
  begin: (store, { fence }) => beginNext(store, { ...fence, owner: BOB }, ['scripted']),
  renew: (store, { fence }) =>
    store.renew([{ ...fence, owner: BOB }], 1).then((lost) => (lost.length === 1 ? null : lost)),
  release: (store, { fence }) => store.release({ ...fence, owner: BOB }),
  commit: (store, { fence }) => store.commit({ ...fence, owner: BOB }, 900, [update(null, 'x')]),
  events: (store, { conversation }) => store.events(BOB, conversation, { after: 0, limit: 9 }),
  eventsBefore: (store, { conversation }) => store.eventsBefore(BOB, conversation, { before: 9, limit: 9 }),
  'eventsBefore of a turn': (store, { conversation }) =>
    store.eventsBefore(BOB, conversation, { before: 9, limit: 9, turn: 1 }),
  findTurn: (store, { open }) => store.findTurn(BOB, open),
  findRequest: (store) => store.findRequest(BOB, 'anns-request'),
  outline: (store, { conversation }) => store.outline(BOB, conversation, { after: 0, limit: 9 }),
  turns: (store, { conversation }) => store.turns(BOB, conversation, { after: 0, limit: 9 }),
  turnEvents: (store, { open }) => store.turnEvents(BOB, open),
  recordsBefore: (store, { conversation }) => store.recordsBefore(BOB, conversation, { upTo: 9, limit: 9 }),
  recordsAfter: (store, { conversation }) => store.recordsAfter(BOB, conversation, { after: 0, limit: 9 }),
  countRecordsAfter: (store, { conversation }) => store.countRecordsAfter(BOB, conversation, 0),
  sessions: (store, { conversation }) => store.sessions(BOB, conversation),
  sessionIsElsewhere: (store, { conversation, native }) =>
    store.sessionIsElsewhere(BOB, conversation, { storage: 'any', id: native }),
  findSessions: (store, { native }) => store.findSessions(BOB, native),
  receipts: (store, { conversation }) => store.receipts(BOB, conversation),
  restores: (store, { conversation }) => store.restores(BOB, conversation, { after: 0, limit: 9 }),
  permissions: (store) => store.permissions(BOB, {}),
  'open permissions': (store) => store.permissions(BOB, { open: true }),
  'permissions of a conversation': (store, { conversation }) => store.permissions(BOB, { conversation }),
  'open permissions of a conversation': (store, { conversation }) =>
    store.permissions(BOB, { conversation, open: true }),
  findPermission: (store, { permission }) => store.findPermission(BOB, permission),
  openPermissions: (store, { conversation }) => store.openPermissions(BOB, conversation),
  summary: (store, { conversation }) => store.summary(BOB, conversation),
  usage: (store) => store.usage(BOB),
  search: (store) => store.search(BOB, 'answer', 9),
  verify: (store, { conversation }) => store.verify(BOB, conversation),
  nameSandbox: (store, { sandbox }) => store.nameSandbox(BOB, { id: sandbox, place: 'here', name: 'stolen' }),
  findSandbox: (store, { sandbox }) => store.findSandbox(BOB, sandbox),
  'findSandbox by name': (store) => store.findSandbox(BOB, 'anns-place'),
  listSandboxes: (store) => store.listSandboxes(BOB, { limit: 9 }),
  sandboxUses: (store, { sandbox }) => store.sandboxUses(BOB, sandbox, 9),
  openSandbox: (store, { sandbox }) => store.openSandbox(BOB, { id: sandbox, place: 'here' }, WORKER),
  holdSandbox: (store, { sandbox }) => store.holdSandbox(BOB, sandbox, { worker: WORKER, leaseMs: 1 }),
  releaseSandbox: (store, { sandbox }) => store.releaseSandbox(BOB, sandbox, WORKER.id),
  changeSandbox: (store, { sandbox }) => store.changeSandbox(BOB, sandbox, { setup: [] }),
  leaveSandbox: (store, { sandbox }) => store.leaveSandbox(BOB, sandbox, 'destroyed', 'x'),
  keys: (store) => store.keys(BOB),
  revokeKey: (store, { key }) => store.revokeKey(BOB, key),
};

export function owners(world: World): void {
  test.each(Object.keys(VERBS))('%s gives another owner nothing and changes nothing', async (name) => {
    const { store, site } = world;
    const anns = await everything(store);
    const before = await site.contents();
    const call = VERBS[name] as (typeof VERBS)[string];
    const answer = await call(store, anns).catch((error: { code?: string }) => error.code);
    expect([null, undefined, 'not_found', []]).toContainEqual(answer);
    expect(await site.contents()).toBe(before);
  });

  test('the same verbs give the owner something', async () => {
    const { store } = world;
    const { conversation, native, permission, open } = await everything(store);
    expect(await store.search(ANN, 'answer', 9)).toHaveLength(1);
    expect(await store.findSessions(ANN, native)).toHaveLength(1);
    expect(await store.permissions(ANN, { open: true })).toHaveLength(1);
    expect(await store.usage(ANN)).toHaveLength(1);
    expect(await codeOf(store.verify(ANN, conversation))).toBeNull();
    expect(await codeOf(store.answer(ANN, permission, 'yes', 'ann'))).toBeNull();
    expect((await store.requestCancel(ANN, open, 'ann')).cancelRequested).toBe(true);
  });
}

interface Anns {
  readonly conversation: string;
  readonly open: string;
  readonly native: string;
  readonly permission: string;
  readonly key: string;
  readonly sandbox: string;
  readonly fence: { conversation: string; owner: string; epoch: number };
}

/** Creates one of everything that Ann can have. */
async function everything(store: Store): Promise<Anns> {
  const { conversation, turn, holder, fence } = await begun(store, { key: 'anns-key' });
  const native = session();
  await holder.write(opening(native, turn.id), sending(turn.id, { session: native.ref }));
  await holder.write({ write: 'receipt', receipt: receipt(), turn: turn.id, session: native.ref });
  await holder.write(ending(turn, { session: native.ref, usage: usage(1) }));
  const open = await enqueue(store, conversation, { requestId: 'anns-request' });
  await beginNext(store, fence, [open.agent]);
  const id = fresh('permission');
  const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }] as const;
  const permission = { id, attempt: 1, title: 'May I?', toolCall: {}, options };
  await holder.write({ write: 'ask', turn: open.id, permission });
  const { id: key } = await store.createKey(ANN, newKey());
  const sandbox = fresh('sandbox');
  await store.nameSandbox(ANN, { id: sandbox, place: 'here', name: 'anns-place' });
  return { sandbox, conversation, open: open.id, native: native.id, permission: id, key, fence };
}
