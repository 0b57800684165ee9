import { expect, test } from 'vitest';
import { type Toast, withToast } from './say.ts';

let ids = 0;
const toast = (text: string, tone: Toast['tone'], hint?: string): Toast => {
  ids += 1;
  return { id: ids, text, tone, times: 1, ...(hint !== undefined && { hint }) };
};
const shown = (all: readonly Toast[]) =>
  all.reduce<Toast[]>(withToast, []).map(({ text, times }) => `${text} ${times}`);

test('errors stay, whatever comes after them; of other messages only the last four are shown', () => {
  const errors = [1, 2, 3, 4, 5, 6].map((n) => toast(`error ${n}`, 'bad'));
  const others = [1, 2, 3, 4, 5, 6].map((n) => toast(`note ${n}`, n % 2 === 0 ? 'good' : 'plain'));
  expect(shown([...errors, ...others])).toEqual([
    ...errors.map(({ text }) => `${text} 1`),
    ...['note 3 1', 'note 4 1', 'note 5 1', 'note 6 1'],
  ]);
  expect(shown([...others, ...errors])).toHaveLength(10);
});

test('the same error is counted and moves to the end; another hint makes it another error', () => {
  const all = [toast('full', 'bad'), toast('gone', 'bad'), toast('full', 'bad', 'Try again.'), toast('full', 'bad')];
  expect(shown(all)).toEqual(['gone 1', 'full 1', 'full 2']);
  expect(shown([toast('done', 'good'), toast('done', 'good')])).toEqual(['done 1', 'done 1']);
});
