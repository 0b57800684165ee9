import { expect, test } from 'vitest';
import type { RecordPart } from '../../../src/core/turn/record.ts';
import type { Turn } from '../../../src/core/turn/turn.ts';
import {
  ANN,
  begun,
  claim,
  ending,
  endingUnsent,
  enqueue,
  Holder,
  newConversation,
  nextTurn,
  prompt,
  receipt,
  record,
  runTurn,
  sending,
  usage,
  type World,
} from './world.ts';

export function records(world: World): void {
  test('a record is read as it was written, with the prompt of its turn and strings of any length', async () => {
    const { store, site } = world;
    const { conversation, turn, holder } = await begun(store);
    const long = '\u0000long '.repeat(4000);
    const parts: RecordPart[] = [
      { type: 'thought', text: 'Hm.' },
      {
        type: 'tool',
        id: 't',
        name: 'read',
        kind: 'read',
        target: 'a.txt',
        input: { a: [1, long] },
        output: long,
        status: 'failed',
      },
      { type: 'text', text: long },
      { type: 'text', text: '\u0000\u0000' },
    ];
    const failure = { code: 'agent_failed', message: 'x', hint: 'y' } as const;
    const written = record(turn, { sessionId: 'native', outcome: 'failed', failure, parts, usage: usage(3) });
    await holder.write(sending(turn.id), ending(turn, { outcome: 'failed', failure, record: written }));
    const read = await (await site.open()).recordsAfter(ANN, conversation, { after: 0, limit: 9 });
    expect(read).toEqual([written]);
  });

  test('a record may have another prompt than its turn, because a tracker may set it afterwards', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const told = record(turn, { prompt: prompt('What was really asked') });
    await holder.write(sending(turn.id), ending(turn, { record: told }));
    expect(await store.recordsBefore(ANN, conversation, { upTo: 9, limit: 9 })).toEqual([told]);
    expect((await store.findTurn(ANN, turn.id))?.prompt).toEqual(turn.prompt);
    expect(await store.search(ANN, 'really', 5)).toHaveLength(1);
  });

  test.each(['in one commit', 'in two'])(
    'a turn that was accepted without its prompt gets that of its record, sent and ended %s',
    async (how) => {
      const { store } = world;
      const conversation = await newConversation(store);
      await enqueue(store, conversation, { prompt: [] });
      const { fence, turn } = await claim(store, { conversation });
      if (turn === null) throw new Error('There is no turn.');
      const told = record(turn, { prompt: prompt(`What was asked. ${'And so on. '.repeat(2_000)}`) });
      const holder = new Holder(store, fence);
      if (how === 'in two') await holder.write(sending(turn.id));
      await holder.write(...(how === 'in two' ? [] : [sending(turn.id)]), ending(turn, { record: told }));
      expect((await store.findTurn(ANN, turn.id))?.prompt).toEqual(told.prompt);
      expect(await store.recordsBefore(ANN, conversation, { upTo: 9, limit: 9 })).toEqual([told]);
    },
  );

  test('records are read from both ends in pages, and counted, without turns that are not in the history', async () => {
    const { store } = world;
    const { conversation, turn, holder, fence } = await begun(store);
    await holder.write(sending(turn.id), ending(turn));
    await runTurn(store, holder);
    await enqueue(store, conversation);
    await holder.write(endingUnsent((await nextTurn(store, fence)) as Turn));
    await runTurn(store, holder);
    const before = async (page: { upTo: number; limit: number }) =>
      (await store.recordsBefore(ANN, conversation, page)).map(({ n }) => n);
    const after = async (page: { after: number; limit: number }) =>
      (await store.recordsAfter(ANN, conversation, page)).map(({ n }) => n);
    expect(await before({ upTo: 9, limit: 2 })).toEqual([4, 2]);
    expect(await before({ upTo: 3, limit: 9 })).toEqual([2, 1]);
    expect(await after({ after: 0, limit: 2 })).toEqual([1, 2]);
    expect(await after({ after: 2, limit: 9 })).toEqual([4]);
    const counts = await Promise.all([0, 1, 2, 3, 4, 9].map((n) => store.countRecordsAfter(ANN, conversation, n)));
    expect(counts).toEqual([3, 2, 1, 1, 0, 0]);
  });

  test('a page of large turns or records is short, and only the page after the last one is empty', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    await holder.write(sending(turn.id), ending(turn));
    const large = prompt('x'.repeat(5 * 1024 * 1024));
    for (let i = 0; i < 3; i += 1) await runTurn(store, holder, { prompt: large });
    const huge = prompt('x'.repeat(9 * 1024 * 1024));
    await runTurn(store, holder, { prompt: huge });
    const numbers = (of: readonly { n: number }[]) => of.map(({ n }) => n);
    const turns = async (after: number) => numbers(await store.turns(ANN, conversation, { after, limit: 100 }));
    const after = async (n: number) => numbers(await store.recordsAfter(ANN, conversation, { after: n, limit: 100 }));
    const before = async (n: number) => numbers(await store.recordsBefore(ANN, conversation, { upTo: n, limit: 100 }));
    expect([await turns(0), await turns(3), await turns(4), await turns(5)]).toEqual([[1, 2, 3], [4, 5], [5], []]);
    expect([await after(0), await after(3), await after(4), await after(5)]).toEqual([[1, 2, 3], [4, 5], [5], []]);
    expect([await before(5), await before(4), await before(2), await before(0)]).toEqual([[5], [4, 3], [2, 1], []]);
  });

  test('receipts are sorted by turn and attempt, a later one replaces an earlier, and one of a warm-up comes after its turn', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const write = (set: Parameters<typeof receipt>[0], of: string | null = turn.id) =>
      holder.write({ write: 'receipt', receipt: receipt(set), turn: of, session: null });
    await write({ attempt: 1, rung: 'resume' });
    await write({ attempt: 2, rung: 'transcript' });
    await write({ attempt: 1, rung: 'none', proof: 'refuted' });
    await holder.write(sending(turn.id), ending(turn));
    await write({ turn: null, attempt: 0, rung: 'live' }, null);
    await write({ turn: 2, attempt: 1, rung: 'replay' }, null);
    const rungs = async (filter?: { turn?: number }) =>
      (await store.receipts(ANN, conversation, filter)).map(({ rung }) => rung);
    expect(await rungs()).toEqual(['none', 'transcript', 'live', 'replay']);
    expect(await rungs({ turn: 1 })).toEqual(['none', 'transcript']);
    expect(await rungs({ turn: 7 })).toEqual([]);
    expect((await store.receipts(ANN, conversation))[0]).toEqual(
      receipt({ attempt: 1, rung: 'none', proof: 'refuted' }),
    );
    const placed = async (range: Parameters<typeof store.restores>[2]) =>
      (await store.restores(ANN, conversation, range)).map(({ n, receipt }) => [n, receipt.rung]);
    const [first, second] = [[[1, 'none'], [1, 'transcript'], [1, 'live']], [[2, 'replay']]]; // biome-ignore format: pairs
    expect(await placed({ after: 0, limit: 1 })).toEqual(first);
    expect(await placed({ after: 1, limit: 9 })).toEqual(second);
    expect(await placed({ after: 2, limit: 9 })).toEqual([]);
    expect(await placed({ before: 9, limit: 1 })).toEqual(second);
    expect(await placed({ before: 2, limit: 9 })).toEqual(first);
    expect(await placed({ before: 9, limit: 9 })).toEqual([...first, ...second]);
  });
}
