import { expect, test } from 'vitest';
import { parseMemo, renderMemo } from './memo.ts';

const cost = { costUsd: 1.5, version: '2.1.325' };
const seal = { bytes: 12, sha256: 'abc' };

test.each([null, undefined, '', 'null', '{', '[]', '"x"', '{"costUsd":"1","bytes":"2"}'])(
  'a memo that is none of ours says nothing: %s',
  (memo) => {
    expect(parseMemo(memo)).toEqual({ cost: null, seal: null });
  },
);

test.each([
  { cost, seal },
  { cost, seal: null },
  { cost: null, seal },
  { cost: null, seal: null },
])('a memo comes back as it went: %j', (memo) => {
  expect(parseMemo(renderMemo(memo))).toEqual(memo);
});
