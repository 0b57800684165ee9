import type { TurnOutline } from 'throughline/client';
import { expect, test } from 'vitest';
import { shareOf } from './share.ts';

const turn = (n: number, sessionId: string | null, more: Partial<TurnOutline> = {}) =>
  ({ n, sessionId, rung: sessionId === null ? null : 'live', imported: false, ...more }) as TurnOutline;

const TURNS = [turn(1, 'a'), turn(2, 'a'), turn(3, null), turn(4, 'b'), turn(5, 'b')];

test.each([
  ['the first one knows nothing of what came after it', { id: 'a', watermark: 2, dropped: 0 }, [1, 2], 0, 2],
  ['the second one was told all that came before', { id: 'b', watermark: 5, dropped: 0 }, [4, 5], 2, 0],
  ['what a budget left out is not known', { id: 'b', watermark: 5, dropped: 1 }, [4, 5], 1, 1],
])('%s', (_, session, answered, before, unknown) => {
  const share = shareOf(session, TURNS);
  expect([share.answered.map(({ n }) => n), share.before, share.unknown]).toEqual([answered, before, unknown]);
});

test('imported turns were told, and answered by nobody here', () => {
  const turns = [turn(1, 'x', { imported: true, rung: null }), turn(2, 'b')];
  expect(shareOf({ id: 'b', watermark: 2, dropped: 0 }, turns)).toMatchObject({ before: 1, unknown: 0 });
});
