import { expect, test } from 'vitest';
import { allEvents, refusedWith } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

test('several conversations of a user share a sandbox by its name, and the chain to their sessions can be read', async () => {
  await using home = new Home();
  const tl = await home.open();
  const [one, two] = ['one', 'two'].map((key) => tl.conversation(key, { sandbox: 'website' }));
  await one?.ask('/tool write note.txt');
  const { reply } = (await two?.ask('Which directory are you in?')) ?? {};
  const [use, other] = [await one?.sandbox(), await two?.sandbox()];
  expect(use).toEqual({
    ...{ owner: 'local', conversation: (await one?.get())?.id },
    ...{ sandbox: other?.sandbox, session: (await one?.sessions())?.[0]?.id },
  });
  expect(reply).toContain(use?.sandbox);
  const { sandbox, uses, setup } = await tl.sandbox('website').show();
  expect(sandbox).toMatchObject({ id: use?.sandbox, name: 'website', state: 'ready', conversations: 2, disk: null });
  expect(setup).toEqual([]);
  expect(uses).toHaveLength(2);
  expect(uses).toEqual(expect.arrayContaining([use, other]));
  expect(await tl.sandbox(sandbox.id).show()).toEqual(await tl.sandbox('website').show());
});

test('each user has sandboxes of their own, whatever their names', async () => {
  await using home = new Home();
  const tl = await home.open();
  const [ann, bob] = [tl.as('ann'), tl.as('bob')];
  await ann.conversation('chat', { sandbox: 'website' }).ask('Hello.');
  await bob.conversation('chat', { sandbox: 'website' }).ask('Hello.');
  const [{ id: anns } = { id: '' }] = await ann.sandboxes();
  const [{ id: bobs } = { id: '' }] = await bob.sandboxes();
  expect(anns).not.toBe(bobs);
  expect(await ann.sandboxes()).toMatchObject([{ name: 'website', owner: 'ann', conversations: 1 }]);
  await refusedWith('not_found', bob.sandbox(anns).show(), /no sandbox/);
  await refusedWith('not_found', tl.sandbox('website').show(), /no sandbox/);
});

test('they are listed newest first, in pages, and one of a single conversation has no name', async () => {
  await using home = new Home();
  const tl = await home.open();
  for (const key of ['a', 'b', 'c']) await tl.conversation(key).ask('Hello.');
  const ids = await Promise.all(['c', 'b', 'a'].map(async (key) => (await tl.conversation(key).get()).id));
  expect((await tl.sandboxes()).map(({ id }) => id)).toEqual(ids);
  expect((await tl.sandboxes({ limit: 1, before: ids[0] as string })).map(({ id, name }) => [id, name])).toEqual([
    [ids[1], null],
  ]);
  expect(await tl.sandboxes({ before: ids[2] as string })).toEqual([]);
});

test('a shared sandbox says when it was created, and when another process reopens it; one of a single conversation is quiet', async () => {
  await using home = new Home();
  const tl = await home.open({ maxWarm: 0 });
  await tl.conversation('shared', { sandbox: 'website' }).ask('Hello.');
  await tl.conversation('shared').ask('Hello again.');
  await tl.conversation('alone').ask('Hello.');
  await tl.close();
  const next = await home.open();
  await next.conversation('shared').ask('And again.');
  await next.conversation('alone').ask('Hello again.');
  const { id } = (await next.sandbox('website').show()).sandbox;
  const told = async (key: string) =>
    (await allEvents(next.engine, key)).flatMap(({ kind, payload }) =>
      kind.startsWith('sandbox.') ? [{ kind, payload }] : [],
    );
  expect(await told('shared')).toEqual([
    { kind: 'sandbox.created', payload: { sandboxId: id, name: 'website' } },
    { kind: 'sandbox.reopened', payload: { sandboxId: id, name: 'website' } },
  ]);
  expect(await told('alone')).toEqual([]);
});
