import { expect, test } from 'vitest';
import {
  ANN,
  begun,
  claim,
  codeOf,
  ending,
  enqueue,
  Holder,
  newConversation,
  opening,
  prompt,
  record,
  runTurn,
  sending,
  session,
  spec,
  update,
  type World,
} from './world.ts';

export function finding(world: World): void {
  test('a search finds turns whose prompt and answer together have all the words', async () => {
    const { store } = world;
    const { conversation } = await spoken(world, 'Where is the Müller report?', 'In the cellar, under the stairs.');
    await spoken(world, 'Where is the cat?', 'On the roof.');
    const hits = await store.search(ANN, 'CELLAR report', 9);
    expect(hits).toMatchObject([{ conversation, key: null, n: 1, title: 'Where is the Müller report?' }]);
    expect(hits[0]?.snippet).toContain('report');
    expect(await store.search(ANN, 'muller', 9)).toHaveLength(1);
    expect(await store.search(ANN, 'where', 9)).toHaveLength(2);
    expect(await store.search(ANN, 'where', 1)).toHaveLength(1);
    expect(await store.search(ANN, 'cellar cat', 9)).toEqual([]);
    // The last word may be a prefix, but not a single letter. The others must be whole words.
    expect(await store.search(ANN, 'report cell', 9)).toHaveLength(1);
    expect(await store.search(ANN, 'cell report', 9)).toEqual([]);
    expect(await store.search(ANN, 'c', 9)).toEqual([]);
  });

  test('a conversation is found by its title, once, and only by the current one', async () => {
    const { store } = world;
    const { conversation } = await spoken(world, 'Invoices of März', 'Sent.');
    const found = (words: string) => store.search(ANN, words, 9);
    expect(await found('marz inv')).toMatchObject([{ conversation, n: 1 }]); // its turn also has the words
    await store.setTitle(ANN, conversation, 'Rounding of amounts', 'caller');
    const title = 'Rounding of amounts';
    expect(await found('ROUNDING amou')).toEqual([{ conversation, key: null, title, n: null, snippet: title }]);
    await store.setTitle(ANN, conversation, 'Taxes', 'caller');
    expect(await found('rounding')).toEqual([]);
    expect(await store.search('bob', 'taxes', 9)).toEqual([]);
    await store.eraseConversation(ANN, conversation);
    expect(await found('taxes')).toEqual([]);
  });

  test('titles come before turns, and are at most half of the results when there are turns', async () => {
    const { store } = world;
    const turns = [await spoken(world, 'Where is the harbour?', 'South.'), await spoken(world, 'A harbour?', 'North.')];
    const named: string[] = [];
    for (const title of ['Harbour one', 'Harbour two', 'Harbour three']) {
      named.push((await store.ensureConversation(ANN, { ...spec(), title })).conversation.id);
    }
    const found = async (limit: number) =>
      (await store.search(ANN, 'harbour', limit)).map(({ conversation, n }) => [conversation, n]);
    expect(await found(9)).toEqual([...named.toReversed().map((id) => [id, null]), ...(await found(9)).slice(3)]);
    expect((await found(9)).slice(3)).toEqual(
      expect.arrayContaining(turns.map(({ conversation }) => [conversation, 1])),
    );
    expect((await found(3)).map(([, n]) => n)).toEqual([null, 1, 1]);
    expect((await found(1)).map(([, n]) => n)).toEqual([1]);
  });

  test('the snippet shows the place where the word is, also in a long answer', async () => {
    const { store } = world;
    await spoken(world, 'Go on.', `${'lorem ipsum '.repeat(2000)} the hidden Wörd here ${'dolor '.repeat(2000)}`);
    const [hit] = await store.search(ANN, 'word', 1);
    expect(hit?.snippet).toContain('hidden Wörd here');
    expect(hit?.snippet.length).toBeLessThan(300);
  });

  test.each([
    ['a"b', 0],
    ['cat OR 1=1', 0],
    ['cat*', 1],
    ['ca* dog', 0],
    ['ca*', 1], // as without the sign: the last word may be a prefix
    ['NEAR(cat dog)', 0],
    ['prompt:cat', 0],
    ["cat' --", 1],
    ['(cat', 1],
    ['cat AND', 0],
    ['-cat', 1],
    ['^dog', 1],
  ])('nothing in a search is interpreted as an expression: %s', async (query, hits) => {
    const { store } = world;
    await spoken(world, 'The cat.', 'A dog.');
    expect(await store.search(ANN, query, 9)).toHaveLength(hits);
  });

  test.each(['', '   ', '\u0000', '"', '"" --'])('a search without a word is invalid: %j', async (query) => {
    expect(await codeOf(world.store.search(ANN, query, 9))).toBe('invalid');
  });

  test('a turn that has not ended is not found', async () => {
    const { store } = world;
    const { turn, holder } = await begun(store);
    await holder.write(sending(turn.id), update(turn.id, 'secretword'));
    expect(await store.search(ANN, 'secretword', 9)).toEqual([]);
  });

  test('a name with an unpaired surrogate finds nothing, also not a name with U+FFFD in its place', async () => {
    const { store } = world;
    const id = await newConversation(store, { key: 'a\ufffd' });
    const { id: turn } = await enqueue(store, id, { requestId: 'a\ufffd' });
    await new Holder(store, (await claim(store, { conversation: id })).fence).write(
      opening(session({ id: 'a\ufffd' }), turn),
    );
    expect((await store.findConversation(ANN, 'a\ufffd'))?.id).toBe(id);
    expect((await store.findRequest(ANN, 'a\ufffd'))?.id).toBe(turn);
    expect(await store.findSessions(ANN, 'a\ufffd')).toHaveLength(1);
    for (const name of ['a\ud800', 'a\udfff']) {
      expect(await store.findConversation(ANN, name)).toBeNull();
      expect(await store.findRequest(ANN, name)).toBeNull();
      expect(await store.findSessions(ANN, name)).toEqual([]);
    }
  });

  test('an unchanged chain of events is verified', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    for (let i = 0; i < 700; i += 100) await holder.write(...Array.from({ length: 100 }, () => update(turn.id, 'ä')));
    expect((await store.verify(ANN, conversation)).broken).toBeNull();
    expect((await store.verify(ANN, await newConversation(store))).broken).toBeNull();
  });

  test('an earlier head is found in the chain, however much was added since', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const { head } = await store.verify(ANN, conversation);
    const other = await store.verify(ANN, await newConversation(store));
    const seq = await holder.write(update(turn.id, 'more'), update(turn.id, 'and more'));
    const now = await store.verify(ANN, conversation, head);
    expect(now).toMatchObject({ broken: null, kept: true });
    expect(now.head).toMatch(new RegExp(`^${seq}:[0-9a-f]{64}$`));
    const digest = (of: string) => of.split(':')[1];
    for (const wrong of [other.head, `${seq + 1}:${digest(now.head)}`, `1:${digest(now.head)}`]) {
      expect(await store.verify(ANN, conversation, wrong), wrong).toEqual({ ...now, kept: false });
    }
  });

  test.each([
    ['payload', 3],
    ['time', 3],
    ['missing', 3],
    ['tail', 4],
    ['payload', 1],
    ['tail', 1],
  ] as const)('a chain with damage (%s) is broken at the first number that does not fit: %i', async (kind, seq) => {
    const { store, site } = world;
    const { conversation, turn, holder } = await begun(store);
    await holder.write(update(turn.id, 'a'), update(turn.id, 'b'), update(turn.id, 'c'));
    const untouched = (await begun(store)).conversation;
    await site.damage({ kind, conversation, seq });
    const { head } = await store.verify(ANN, untouched);
    expect(await store.verify(ANN, conversation, head)).toMatchObject({ broken: seq, kept: false });
    expect((await store.verify(ANN, untouched)).broken).toBeNull();
  });
}

async function spoken({ store }: World, asked: string, answered: string) {
  const { conversation, turn, holder } = await begun(store, { title: asked });
  const told = record(turn, { prompt: prompt(asked), parts: [{ type: 'text', text: answered }] });
  await holder.write(sending(turn.id), ending(turn, { record: told }));
  await runTurn(store, holder);
  return { conversation };
}
