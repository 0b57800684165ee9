import { expect, test } from 'vitest';
import type { Update } from '../../../core/turn/update.ts';
import { BetweenTurns } from './updates.ts';

const chunk = (text: string): Update => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
const title = (text: string): Update => ({ sessionUpdate: 'session_info_update', title: text });

test('updates between turns that look like an answer are marked, others are unchanged, and each is returned once', () => {
  const between = new BetweenTurns();
  between.keep(chunk('late'), 10);
  between.keep(title('A title'), 10);
  expect(between.take()).toEqual([{ sessionUpdate: '_acp/between_turns', update: chunk('late') }, title('A title')]);
  expect(between.take()).toEqual([]);
});

test('when there are too many updates, the newest are kept and the others counted', () => {
  const many = new BetweenTurns();
  for (let n = 0; n < 1_200; n += 1) many.keep(title(`${n}`), 1);
  const [dropped, first] = many.take();
  expect(dropped).toEqual({ sessionUpdate: '_acp/dropped', updates: 700 });
  expect(first).toEqual(title('700'));
  const long = new BetweenTurns();
  for (let n = 0; n < 10; n += 1) long.keep(title(`${n}`), 2 ** 20);
  expect(long.take()).toHaveLength(1 + 4);
  long.keep(title('one that is too long by itself'), 2 ** 30);
  expect(long.take()).toEqual([{ sessionUpdate: '_acp/dropped', updates: 1 }]);
});
