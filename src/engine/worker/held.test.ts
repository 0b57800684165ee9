import { expect, test } from 'vitest';
import { type HeldEvent, type HeldState, nextState } from './held.ts';

const WORKING: HeldState = { is: 'working', notified: false };
const NOTIFIED: HeldState = { is: 'working', notified: true };
const run = { isLast: true } as Extract<HeldEvent, { type: 'began' }>['run'];
const RUNNING: HeldState = { is: 'running', notified: false, run };
const RUNNING_NOTIFIED: HeldState = { is: 'running', notified: true, run };
const WARM: HeldState = { is: 'warm', since: 7, due: false };
const DUE: HeldState = { is: 'warm', since: 7, due: true };
const GONE: HeldState = { is: 'gone' };

const keeps: HeldEvent = { type: 'rested', keep: 'idle', now: 7 };
const waits: HeldEvent = { type: 'rested', keep: 'due', now: 7 };
const leaves: HeldEvent = { type: 'rested', keep: false, now: 7 };

test.each<[string, HeldState, HeldEvent, HeldState]>([
  ['a notification while it works is kept', WORKING, { type: 'notified' }, NOTIFIED],
  ['a second one changes nothing', NOTIFIED, { type: 'notified' }, NOTIFIED],
  ['a notification wakes one that is warm', WARM, { type: 'notified' }, NOTIFIED],
  ['looking for a turn answers what was notified before', NOTIFIED, { type: 'looked' }, WORKING],
  ['a turn begins', WORKING, { type: 'began', run }, RUNNING],
  ['a notification that came before the turn is kept', NOTIFIED, { type: 'began', run }, RUNNING_NOTIFIED],
  ['a notification while a turn runs is kept', RUNNING, { type: 'notified' }, RUNNING_NOTIFIED],
  ['with its end it works again', RUNNING, { type: 'ended' }, WORKING],
  ['a notification during the turn is kept for the next look', RUNNING_NOTIFIED, { type: 'ended' }, NOTIFIED],
  [
    'the turn is not the last one when another is wanted',
    RUNNING_NOTIFIED,
    { type: 'wanted' },
    { ...RUNNING_NOTIFIED, run: { ...run, isLast: false } },
  ],
  ['a wanted turn does not wake it: its notification does', WARM, { type: 'wanted' }, WARM],
  ['one that runs does not rest', RUNNING, leaves, RUNNING],
  ['one that runs may be left, when its lease is lost', RUNNING, { type: 'left' }, GONE],
  ['a turn that ends later does not bring it back', GONE, { type: 'ended' }, GONE],
  ['with nothing left it stays warm', WORKING, keeps, WARM],
  ['without a slot for its turn it is due', WORKING, waits, DUE],
  ['a notification wakes one that is due', DUE, { type: 'notified' }, NOTIFIED],
  ['one that was notified looks again before it waits', NOTIFIED, waits, NOTIFIED],
  ['with nothing to keep it leaves', WORKING, leaves, GONE],
  ['one that was notified looks again before it stays', NOTIFIED, keeps, NOTIFIED],
  ['one that was notified looks again before it leaves', NOTIFIED, leaves, NOTIFIED],
  ['work that ends later does not end one that is warm', WARM, leaves, WARM],
  ['work that ends later leaves one that is due as it is', DUE, keeps, DUE],
  ['a warm one may be left', WARM, { type: 'left' }, GONE],
  ['so may one that works, when its lease is lost', WORKING, { type: 'left' }, GONE],
  ['one that is gone stays gone', GONE, { type: 'notified' }, GONE],
  ['not even work that ends', GONE, keeps, GONE],
])('%s', (_, state, event, expected) => {
  expect(nextState(state, event)).toEqual(expected);
});
