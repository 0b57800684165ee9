import { describe, expect, test } from 'vitest';
import { ChainIndex, isWhole, leafOf, positionOf } from './chain.ts';
import type { Entry } from './entries.ts';

let clock = 0;
const at = () => new Date(1_700_000_000_000 + 1_000 * clock++).toISOString();
const user = (uuid: string, parentUuid: string | null, more: object = {}): Entry => {
  return { type: 'user', uuid, parentUuid, timestamp: at(), message: { role: 'user', content: uuid }, ...more };
};
const answer = (uuid: string, parentUuid: string, blocks: object[] = [], id = `msg_${uuid}`): Entry => {
  const content = [{ type: 'text', text: uuid }, ...blocks];
  return { type: 'assistant', uuid, parentUuid, timestamp: at(), message: { id, role: 'assistant', content } } as Entry;
};
const call = (id: string) => ({ type: 'tool_use', id, name: 'Bash', input: {} });
const result = (uuid: string, parent: string, id: string) =>
  user(uuid, parent, { message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: '' }] } });
const note = (leafUuid: string | null): Entry => ({ type: 'last-prompt', leafUuid });
const boundary = (uuid: string, logicalParentUuid: string): Entry => {
  return { type: 'system', subtype: 'compact_boundary', uuid, parentUuid: null, logicalParentUuid, timestamp: at() };
};

function indexOf(entries: readonly (Entry | null)[]): ChainIndex {
  const index = new ChainIndex();
  for (const [i, entry] of entries.entries()) index.add({ number: i + 1, entry });
  return index;
}
const chainOf = (...entries: (Entry | null)[]) => indexOf(entries).chain();
const kinds = (...entries: (Entry | null)[]) => chainOf(...entries).defects.map(({ kind, line }) => `${kind}@${line}`);

const three = () => [user('a', null), answer('b', 'a'), user('c', 'b')];

describe('the chain', () => {
  test('goes from the last entry over the parents to the root', () => {
    const chain = chainOf(...three(), { type: 'cost-state' }, { type: 'attachment', uuid: 'd', parentUuid: 'c' });
    expect(chain).toEqual({ leaf: 'd', count: 4, root: 'start', defects: [] });
    expect(isWhole(chain)).toBe(true);
    expect(positionOf(chain)).toBe('4:d');
    expect(leafOf('4:d')).toBe('d');
    expect(leafOf('d')).toBeNull();
  });

  test('leaves out what subagents did', () => {
    expect(chainOf(...three(), user('s', 'x', { isSidechain: true }))).toMatchObject({
      leaf: 'c',
      count: 3,
      defects: [],
    });
  });

  test('begins at a compaction', () => {
    const index = indexOf([...three(), boundary('k', 'c'), user('l', 'k')]);
    expect(index.chain()).toMatchObject({ leaf: 'l', count: 2, root: 'compaction', defects: [] });
    expect([index.compactionOf('l'), index.compactionOf('c')]).toEqual(['k', null]);
  });

  test('without entries has no position', () => {
    expect(kinds()).toEqual(['empty@0']);
    expect(positionOf(chainOf({ type: 'mode' }))).toBeNull();
    expect(isWhole(chainOf())).toBe(false);
  });
});

describe('the leaf', () => {
  const branch = () => [user('x', 'b'), answer('y', 'x')];

  test('is the last entry, also after a branch', () => {
    expect(chainOf(...three(), ...branch())).toMatchObject({ leaf: 'y', count: 4 });
  });

  test.each([
    ['the last entry, where it descends from the note', [...three(), note('b')], 'c'],
    ['the note, where the last entry is on another branch', [...three(), ...branch(), note('c')], 'c'],
    ['the note, also when the branch came after it', [...three(), note('c'), ...branch()], 'c'],
    ['the last entry, where both branches descend from the note', [...three(), ...branch(), note('b')], 'y'],
    ['the last entry, where the note names an unknown entry', [...three(), note('c'), ...branch(), note('?')], 'y'],
    ['the last entry, where the note is empty', [...three(), note('c'), ...branch(), note(null)], 'y'],
  ])('is %s', (_, entries, leaf) => {
    expect(chainOf(...entries).leaf).toBe(leaf);
  });

  test('is the last entry after tools that were called at once, wherever Claude noted its leaf', () => {
    const start = three();
    const calls = [answer('p', 'c', [call('toolu_1')], 'm'), answer('q', 'p', [call('toolu_2')], 'm')];
    const rest = [result('s', 'p', 'toolu_1'), answer('t', 's'), user('u', 't')];
    for (const noted of ['p', 'q', 'r']) {
      const chain = chainOf(...start, ...calls, result('r', 'q', 'toolu_2'), note(noted), ...rest);
      expect(chain).toMatchObject({ leaf: 'u', count: 7, defects: [] });
    }
  });
});

describe('a defect is found:', () => {
  test('a parent that does not exist', () => {
    const chain = chainOf(user('a', null), answer('b', '?'), user('c', 'b'));
    expect(chain).toMatchObject({ leaf: 'c', count: 2, root: null });
    expect(chain.defects).toEqual([{ kind: 'broken_link', line: 2, uuid: 'b' }]);
    expect(isWhole(chain)).toBe(false);
  });

  test.each([
    ['a second root', [...three(), user('d', null)], ['second_root@4']],
    ['no parent at all', [{ ...user('a', null), parentUuid: undefined } as never], ['second_root@1']],
    ['the same uuid twice', [...three(), user('b', 'c')], ['duplicate_uuid@4']],
    ['a corrupt line', [...three(), null], ['corrupt_line@4']],
    ['a message without uuid', [...three(), { type: 'user', timestamp: at() }], ['missing_uuid@4']],
    ['a message without time', [...three(), { ...answer('d', 'c'), timestamp: '?' }], ['missing_timestamp@4']],
    ['a call that was skipped', [...three(), answer('d', 'c', [call('toolu_1')]), user('e', 'd')], ['dangling_tool@4']],
  ])('%s', (_, entries, found) => {
    expect(kinds(...entries)).toEqual(found);
    expect(isWhole(chainOf(...entries))).toBe(false);
  });

  test.each([
    ['time that goes back', [...three(), { ...answer('d', 'c'), timestamp: '2001-01-01' }], ['time_goes_back@4']],
    ['a call at the end without a result', [...three(), answer('d', 'c', [call('toolu_1')])], ['open_tool@4']],
    ['an unsigned thought', [...three(), answer('d', 'c', [{ type: 'thinking' }])], ['unsigned_thought@4']],
    [
      'a tool id of somebody else',
      [...three(), answer('d', 'c', [call('call_1')]), result('e', 'd', 'call_1')],
      ['foreign_tool_id@4'],
    ],
  ])('%s, by which nothing is lost', (_, entries, found) => {
    expect(kinds(...entries)).toEqual(found);
    expect(isWhole(chainOf(...entries))).toBe(true);
  });

  test('nothing in the times of attachments', () => {
    const early = { type: 'attachment', uuid: 'd', parentUuid: 'c', timestamp: '2001-01-01' };
    expect(kinds(...three(), early, answer('e', 'd'))).toEqual([]);
  });

  test('at most a thousand of them', () => {
    expect(chainOf(...Array.from({ length: 3_000 }, () => null)).defects).toHaveLength(1_001); // the last defect: the chain is empty
  });
});
