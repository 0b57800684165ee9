import { expect, test } from 'vitest';
import type { Entry } from './entries.ts';
import { Following } from './position.ts';

const user = (uuid: string, parentUuid: string | null, more: object = {}): Entry => ({
  type: 'user',
  uuid,
  parentUuid,
  message: { role: 'user', content: 'Hello.' },
  ...more,
});
const answer = (uuid: string, parentUuid: string): Entry => ({ type: 'assistant', uuid, parentUuid });
const result = (uuid: string, parentUuid: string, more: object = {}): Entry => ({
  ...user(uuid, parentUuid, more),
  message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'x' }] },
});
const followers = (from: string, ...entries: Entry[]) => {
  const following = new Following(from);
  return { uuids: entries.filter((entry) => following.add(entry)).map(({ uuid }) => uuid), last: following.last };
};

test('the whole turn follows: results of tools, reminders, the notice of an interruption, a compaction', () => {
  const ours = { promptId: 'ours' };
  const notice = { message: { role: 'user', content: [{ type: 'text', text: '[Request interrupted by user]' }] } };
  const boundary = { type: 'system', subtype: 'compact_boundary', uuid: 'c', parentUuid: null, logicalParentUuid: 'n' };
  for (const mark of [ours, {}]) {
    const { uuids, last } = followers(
      'p',
      user('p', null, mark),
      answer('a', 'p'),
      result('r', 'a', mark),
      user('meta', 'r', { ...mark, isMeta: true }),
      user('n', 'meta', { ...mark, ...notice }),
      boundary,
      user('s', 'c', { ...mark, isCompactSummary: true }),
    );
    expect(uuids).toEqual(['a', 'r', 'meta', 'n', 'c', 's']);
    expect(last).toBe('s');
  }
});

test('a prompt of another client does not follow, nor anything after it, nor entries with its promptId before it', () => {
  const theirs = { promptId: 'theirs' };
  const entries = [answer('a', 'p'), result('r', 'a', theirs), user('q', 'r', theirs), answer('b', 'q')];
  expect(followers('p', user('p', null, { promptId: 'ours' }), ...entries)).toEqual({ uuids: ['a'], last: 'a' });
  // An older version without such marks shows only the prompt.
  const bare = entries.map(({ promptId: _, ...entry }) => entry as Entry);
  expect(followers('p', user('p', null), ...bare)).toEqual({ uuids: ['a', 'r'], last: 'r' });
});

test('what Claude does by itself follows, with the results of its tools', () => {
  const woken = { promptId: 'woken', promptSource: 'system' };
  const entries = [answer('a', 'p'), user('w', 'a', woken), answer('b', 'w'), result('r', 'b', { promptId: 'woken' })];
  expect(followers('p', user('p', null, { promptId: 'ours' }), ...entries).uuids).toEqual(['a', 'w', 'b', 'r']);
  expect(followers('a', ...entries).uuids).toEqual(['w', 'b', 'r']);
});
