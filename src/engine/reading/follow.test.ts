import { expect, test } from 'vitest';
import type { ConversationEvent } from '../../core/event.ts';
import type { Store } from '../../ports/store.ts';
import { Changes } from './changes.ts';
import { follow } from './follow.ts';

const EVENT = { conversation: 'c', seq: 1, kind: 'turn.started', turn: 't', at: 0, payload: { n: 1, attempt: 1 } };

test('readers that ask at the same moment share one read, and its events', async () => {
  let reads = 0;
  const store = {
    listen: () => () => {},
    events: async () => {
      reads += 1;
      return [EVENT as ConversationEvent];
    },
  } as unknown as Store;
  const changes = new Changes(store, 1_000);
  const read = () =>
    follow(store, changes, { owner: 'ann', id: 'c', after: 0, signal: undefined, onQuiet: async () => {} });
  const readers = [read(), read()];
  const [one, other] = await Promise.all(readers.map((reader) => reader.next()));
  expect(one?.value).toBe(other?.value); // the same object: a server encodes it once
  expect(reads).toBe(1);
  for (const reader of readers) await reader.return(undefined);
  changes.close();
});
