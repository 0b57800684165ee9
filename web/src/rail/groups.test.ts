import type { Conversation } from 'throughline/client';
import { expect, test } from 'vitest';
import { groupsOf, projectAt } from './groups.ts';

const row = (id: string, cwd: string | null, pinned = false) =>
  ({ id, project: projectAt(cwd), pinned }) as Conversation;

test.each([
  [null, null],
  ['/home/ann/src/harbor', { path: '/home/ann/src/harbor', name: 'harbor', at: '~/src' }],
  ['/home/ann/src/harbor/', { path: '/home/ann/src/harbor', name: 'harbor', at: '~/src' }],
  ['/Users/ann/infra', { path: '/Users/ann/infra', name: 'infra', at: '~' }],
  ['/srv/teams/web/apps/atlas', { path: '/srv/teams/web/apps/atlas', name: 'atlas', at: '…/web/apps' }],
  ['/work', { path: '/work', name: 'work', at: '' }],
  ['/', { path: '/', name: '/', at: '' }],
])('the project of %s', (cwd, project) => {
  expect(projectAt(cwd)).toEqual(project);
});

test('projects are in the order of their newest conversation, and those without a directory are last', () => {
  const rows = [row('a', null), row('b', '/src/web'), row('c', '/src/api'), row('d', '/src/web/'), row('e', null)];
  expect(groupsOf(rows).map(({ project, rows: own }) => [project.name, own.map(({ id }) => id).join('')])).toEqual([
    ['web', 'bd'],
    ['api', 'c'],
    ['Without a directory', 'ae'],
  ]);
});

test('directories of the same name are two projects', () => {
  expect(groupsOf([row('a', '/x/app'), row('b', '/y/app')]).map(({ project }) => project.at)).toEqual(['/x', '/y']);
});

test('pinned conversations are first in their project', () => {
  const rows = [row('a', '/x'), row('b', '/x', true), row('c', '/y')];
  expect(groupsOf(rows).map(({ rows: own }) => own.map(({ id }) => id).join(''))).toEqual(['ba', 'c']);
});
