import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Store } from '../../../src/ports/store.ts';
import { ANN, begun, endingUnsent, enqueue, newConversation, update, type World } from './world.ts';

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

  test('what the listener reads when it is called is there', async () => {
    const { store, site } = world;
    const other = await site.open();
    const id = await newConversation(store);
    const seen = new Promise<number>((resolve) => {
      const stop = other.listen((moved) => {
        if (moved !== null && !moved.includes(id)) return;
        stop();
        resolve(other.findConversation(ANN, id).then((found) => found?.lastSeq ?? 0));
      });
    });
    await enqueue(store, id);
    expect(await seen).toBeGreaterThan(1);
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
    expect(heard.count()).toBeLessThanOrEqual(1);
    heard.stop();
  });
}

/** Remembers what was heard, and waits for a conversation to be among it. */
function listening(store: Store) {
  let hints: (readonly string[] | null)[] = [];
  let wake = () => {};
  const stop = store.listen((moved) => {
    hints.push(moved);
    wake();
  });
  const matches = (id: string) => hints.some((moved) => moved === null || moved.includes(id));
  return {
    stop,
    count: () => hints.length,
    forget() {
      hints = [];
    },
    /** Resolves when it was heard of; what was heard before is forgotten then. */
    async about(id: string) {
      const deadline = Date.now() + 5000;
      while (!matches(id)) {
        if (Date.now() > deadline) throw new Error(`The bell did not ring for ${id}.`);
        await new Promise<void>((resolve) => {
          wake = resolve;
          setTimeout(resolve, 100);
        });
      }
      hints = [];
    },
  };
}
