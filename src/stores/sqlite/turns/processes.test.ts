import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Child, openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { ANN, allEvents, enqueue, newConversation } from '../../../../test/contracts/store/world.ts';

test.each([2, 4])('%i processes write one conversation: nothing is lost, doubled or out of order', async (count) => {
  const file = join(temporaryFolder(), 'store.db');
  const store = await openAt(file);
  await newConversation(store, { id: 'shared' });
  const children = Array.from({ length: count }, (_, i) => new Child(file, 'write', `p${i}`));
  const said = (await Promise.all(children.map((child) => child.done()))) as {
    turn: string;
    n: number;
    seq: number;
  }[][];
  const turns = await store.turns(ANN, 'shared', { after: 0, limit: 999 });
  expect(turns.map(({ n }) => n)).toEqual(turns.map((_, index) => index + 1));
  expect(turns).toHaveLength(40 * count);
  for (const { turn, n } of said.flat()) expect(turns[n - 1]?.id).toBe(turn);
  for (const id of ['shared', ...said.keys().map((i) => `own-p${i}`)]) {
    const events = await allEvents(store, id);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect((await store.verify(ANN, id)).broken).toBeNull();
  }
  for (const lines of said) expect(lines.at(-1)?.seq).toBe(1 + 2 * 40);
});

test('four processes share the work: every turn is run by one of them, in order', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const store = await openAt(file);
  const ids = await Promise.all(Array.from({ length: 20 }, () => newConversation(store)));
  const turns = await Promise.all(ids.flatMap((id) => [enqueue(store, id), enqueue(store, id)]));
  const children = Array.from({ length: 4 }, (_, i) => new Child(file, 'work', `worker-${i}`));
  const said = (await Promise.all(children.map((child) => child.done()))) as { turn: string }[][];
  expect(
    said
      .flat()
      .map(({ turn }) => turn)
      .toSorted(),
  ).toEqual(turns.map(({ id }) => id).toSorted());
  for (const id of ids) {
    const kinds = (await allEvents(store, id)).map(({ kind }) => kind).slice(-8);
    const one = ['turn.started', 'turn.sent', 'turn.update', 'turn.ended'];
    expect(kinds).toEqual([...one, ...one]);
  }
  expect(await store.workers()).toEqual([]);
});
