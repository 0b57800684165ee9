import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Store } from '../../../src/ports/store.ts';
import { ANN, asking, begun, endingUnsent, enqueue, newConversation, update, type World } from './world.ts';

export function bell(world: World): void {
  test('a listener hears of what its own process writes', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const heard = listening(store);
    await enqueue(store, id);
    await heard.about(id);
    heard.stop();
  });

  test('a listener hears of what another handle writes, whatever the verb', async () => {
    const { store, site } = world;
    const other = await site.open();
    const { conversation, turn, holder, fence } = await begun(store);
    const heard = listening(other);
    await holder.write(update(turn.id, 'x'));
    await heard.about(conversation);
    await store.requestCancel(ANN, turn.id, 'ann');
    await heard.about(conversation);
    await enqueue(store, conversation);
    await heard.about(conversation);
    await holder.write(endingUnsent(turn));
    await heard.about(conversation);
    heard.forget();
    await store.release(fence);
    await heard.about(conversation);
    heard.stop();
  });

  test('what its holder writes is told as its own, and what anybody else does to the conversation is not', async () => {
    const { store } = world;
    const { conversation, turn, holder, fence } = await begun(store);
    const heard = listening(store);
    const question = asking(turn.id);
    await holder.write(update(turn.id, 'x'), question);
    expect(await heard.about(conversation)).toEqual({ own: true });
    await store.answer(ANN, question.permission.id, 'yes', 'ann');
    expect(await heard.about(conversation)).toEqual({ own: false });
    await store.requestCancel(ANN, turn.id, 'ann');
    expect(await heard.about(conversation)).toEqual({ own: false });
    await holder.write(endingUnsent(turn));
    expect(await heard.about(conversation)).toEqual({ own: true });
    await store.release(fence);
    expect(await heard.about(conversation)).toEqual({ own: false });
    await store.eraseConversation(ANN, conversation);
    expect(await heard.about(conversation)).toEqual({ own: false });
    heard.stop();
  });

  test('what happens at the same moment as a write of the holder is not lost in it, also beside a refusal', async () => {
    const { store } = world;
    const { conversation, turn, holder } = await begun(store);
    const heard = listening(store);
    await Promise.all([
      holder.write(update(turn.id, 'x')),
      expect(store.answer(ANN, 'no such permission', 'yes', 'ann')).rejects.toMatchObject({ code: 'not_found' }),
      store.requestCancel(ANN, turn.id, 'ann'),
      holder.write(update(turn.id, 'y')),
    ]);
    expect(await heard.about(conversation)).toEqual({ own: false });
    heard.stop();
  });

  test('to another handle nothing is told as its own', async () => {
    const { store, site } = world;
    const other = await site.open();
    const { conversation, turn, holder } = await begun(store);
    const heard = listening(other);
    await holder.write(update(turn.id, 'x'));
    expect(await heard.about(conversation)).toEqual({ own: false });
    heard.stop();
  });

  test('what the listener reads when it is called is there', async () => {
    const { store, site } = world;
    const other = await site.open();
    const id = await newConversation(store);
    // The first calls may still be about the conversation itself, whose only event is number 1.
    const { promise: seen, resolve } = Promise.withResolvers<void>();
    const stop = other.listen(async (moved) => {
      if (moved !== null && !moved.includes(id)) return;
      if (((await other.findConversation(ANN, id))?.lastSeq ?? 0) > 1) resolve();
    });
    await enqueue(store, id);
    await seen;
    stop();
  });

  test('a listener that stopped hears nothing, and others go on', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const [a, b] = [listening(store), listening(store)];
    a.stop();
    await enqueue(store, id);
    await b.about(id);
    expect(a.count()).toBe(0);
    b.stop();
    b.stop();
  });

  test('without news nobody is called for long', async () => {
    const { store, site } = world;
    await begun(store);
    const heard = listening(await site.open());
    await sleep(700);
    // One may tell of what came just before, one is the first look at the storage. A bell that rings by itself rings at every look.
    expect(heard.count()).toBeLessThanOrEqual(2);
    heard.stop();
  });
}

/** Remembers what was heard, and waits for a conversation to be among it. */
function listening(store: Store) {
  let hints: { moved: readonly string[] | null; own: ReadonlySet<string> | undefined }[] = [];
  let wake = () => {};
  const stop = store.listen((moved, own) => {
    hints.push({ moved, own });
    wake();
  });
  const matching = (id: string) => hints.filter(({ moved }) => moved === null || moved.includes(id));
  return {
    stop,
    count: () => hints.length,
    forget() {
      hints = [];
    },
    /**
     * Resolves when it was heard of; what was heard before is forgotten then. `own`: all that was heard of it is said to be its
     * holder's.
     */
    async about(id: string): Promise<{ own: boolean }> {
      const deadline = Date.now() + 120_000;
      while (matching(id).length === 0) {
        if (Date.now() > deadline) throw new Error(`The bell did not notify of ${id}.`);
        await new Promise<void>((resolve) => {
          wake = resolve;
          setTimeout(resolve, 100);
        });
      }
      const own = matching(id).every((hint) => hint.own?.has(id) === true);
      hints = [];
      return { own };
    },
  };
}
