import type { TurnOutline } from 'throughline/client';
import { expect, test } from 'vitest';
import { shareOf } from './share.ts';

const turn = (n: number, sessionId: string | null, more: Partial<TurnOutline> = {}) =>
  ({ n, sessionId, rung: sessionId === null ? null : 'live', imported: false, ...more }) as TurnOutline;

const TURNS = [turn(1, 'a'), turn(2, 'a'), turn(3, null), turn(4, 'b'), turn(5, 'b')];

test.each([
  ['the first session lacks the turns after it', { id: 'a', watermark: 2, dropped: 0 }, [1, 2], 0, 2],
  ['the second session got all turns before it', { id: 'b', watermark: 5, dropped: 0 }, [4, 5], 2, 0],
  ['turns that a budget dropped are missing', { id: 'b', watermark: 5, dropped: 1 }, [4, 5], 1, 1],
])('%s', (_, session, answered, restored, missing) => {
  const share = shareOf(session, TURNS);
  expect([share.answered.map(({ n }) => n), share.restored, share.missing]).toEqual([answered, restored, missing]);
});

test('imported turns count as restored, and as answered by no session here', () => {
  const turns = [turn(1, 'x', { imported: true, rung: null }), turn(2, 'b')];
  expect(shareOf({ id: 'b', watermark: 2, dropped: 0 }, turns)).toMatchObject({ restored: 1, missing: 0 });
});
