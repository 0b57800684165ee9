import { expect, test } from 'vitest';
import { type HeldEvent, type HeldState, nextState } from './held.ts';

const WORKING: HeldState = { is: 'working', notified: false };
const NOTIFIED: HeldState = { is: 'working', notified: true };
const WARM: HeldState = { is: 'warm', since: 7 };
const GONE: HeldState = { is: 'gone' };

const keeps: HeldEvent = { type: 'rested', keep: true, now: 7 };
const leaves: HeldEvent = { type: 'rested', keep: false, now: 7 };

test.each<[string, HeldState, HeldEvent, HeldState]>([
  ['a notification while it works is kept', WORKING, { type: 'notified' }, NOTIFIED],
  ['a second one changes nothing', NOTIFIED, { type: 'notified' }, NOTIFIED],
  ['a notification wakes one that is warm', WARM, { type: 'notified' }, WORKING],
  ['looking for a turn answers what was notified before', NOTIFIED, { type: 'looked' }, WORKING],
  ['with nothing left it stays warm', WORKING, keeps, WARM],
  ['with nothing worth keeping it leaves', WORKING, leaves, GONE],
  ['one that was notified looks again before it stays', NOTIFIED, keeps, WORKING],
  ['one that was notified looks again before it leaves', NOTIFIED, leaves, WORKING],
  ['a warm one may be left', WARM, { type: 'left' }, GONE],
  ['so may one that works, when its lease is lost', WORKING, { type: 'left' }, GONE],
  ['nothing brings back one that is gone', GONE, { type: 'notified' }, GONE],
  ['not even work that ends', GONE, keeps, GONE],
])('%s', (_, state, event, expected) => {
  expect(nextState(state, event)).toEqual(expected);
});
