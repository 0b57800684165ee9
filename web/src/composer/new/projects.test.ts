import { expect, test } from 'vitest';
import { isBelow, isPath, matchingProjects, projectsOf, shortPath } from './projects.ts';

const project = (path: string) => ({ path, name: path.slice(path.lastIndexOf('/') + 1) });

test('the project used last comes first, and conversations without one do not count', () => {
  const conversations = [
    { project: project('/src/a'), updatedAt: 1 },
    { project: null, updatedAt: 9 },
    { project: project('/src/b'), updatedAt: 5 },
    { project: project('/src/a'), updatedAt: 7 },
  ];
  expect(projectsOf(conversations)).toEqual([
    { path: '/src/a', name: 'a', conversations: 2 },
    { path: '/src/b', name: 'b', conversations: 1 },
  ]);
});

test('there are as many as keys', () => {
  const many = Array.from({ length: 20 }, (_, n) => ({ project: project(`/src/p${n}`), updatedAt: n }));
  expect(projectsOf(many)).toHaveLength(9);
});

test('a project is found by any part of its path', () => {
  const all = [project('/src/harbor-api'), project('/work/infra')].map((one) => ({ ...one, conversations: 1 }));
  expect(matchingProjects(all, 'HARBOR').map(({ name }) => name)).toEqual(['harbor-api']);
  expect(matchingProjects(all, '/work').map(({ name }) => name)).toEqual(['infra']);
  expect(matchingProjects(all, ' ')).toHaveLength(2);
});

test.each([
  ['/src', true],
  ['~', true],
  ['~/src', true],
  ['C:\\src', true],
  ['harbor', false],
  ['~harbor', false],
])('%s is a path: %s', (words, expected) => expect(isPath(words)).toBe(expected));

test.each([
  ['/home/ann/src', '/home/ann', '~/src'],
  ['/home/ann', '/home/ann', '~'],
  ['/home/anna', '/home/ann', '/home/anna'],
  ['/srv', null, '/srv'],
])('%s in the home %s is %s', (path, home, expected) => expect(shortPath(path, home)).toBe(expected));

test.each([
  ['/work', ['/work'], true],
  ['/work/a', ['/home', '/work'], true],
  ['/workers', ['/work'], false],
  ['/a', ['/'], true],
])('%s below %j: %s', (path, roots, expected) => expect(isBelow(path, roots)).toBe(expected));
