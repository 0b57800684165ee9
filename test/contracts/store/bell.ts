import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Store } from '../../../src/ports/store.ts';
import { ANN, asking, begun, endingUnsent, enqueue, newConversation, update, type World } from './world.ts';

export function bell(world: World): void {
  test('a listener is notified of what its own process writes', async () => {
    const { store } = world;
    const id = await newConversation(store);
    const heard = listening(store);
    await enqueue(store, id);
    await heard.about(id);
    heard.stop();
  });

  test('a listener is notified of what another handle writes by any verb', async () => {
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

  test('writes of the holder are notified as its own, and those of others to the conversation are not', async () => {
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

  test('a write of another at the same moment as one of the holder is not notified as its own, also beside a refusal', async () => {
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

  test('for another handle nothing is notified as its own', async () => {
    const { store, site } = world;
    const other = await site.open();
    const { conversation, turn, holder } = await begun(store);
    const heard = listening(other);
    await holder.write(update(turn.id, 'x'));
    expect(await heard.about(conversation)).toEqual({ own: false });
    heard.stop();
  });

  test('when a listener is called, it can read what was written', async () => {
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

  test('a listener that stopped is not notified, and others still are', async () => {
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

  test('listeners are not called without a change', async () => {
    const { store, site } = world;
    await begun(store);
    const heard = listening(await site.open());
    await sleep(700);
    // One call may be about what came just before, and one is for the first poll. A faulty bell would call at every poll.
    expect(heard.count()).toBeLessThanOrEqual(2);
    heard.stop();
  });
}

/** Records the notifications, and waits for one about a conversation. */
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
     * Resolves when there is a notification about the conversation, and then forgets all. `own`: all of them were notified as the
     * holder's own.
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
