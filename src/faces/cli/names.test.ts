import { describe, expect, test } from 'vitest';
import { nearest } from './names.ts';

describe('the nearest name', () => {
  test.each([
    ['notez', ['notes', 'release'], 'notes'],
    ['ntoes', ['notes', 'votes'], 'notes'],
    ['Notes', ['notes'], 'notes'],
    ['claud', ['codex', 'claude'], 'claude'],
    ['tick', ['ticket-4711', 'notes'], 'ticket-4711'],
    ['tick', ['ticket-4711', 'ticket-4712'], null],
    ['notes', ['notes', 'noted'], null],
    ['x', ['y'], null],
    ['entirely-different', ['notes'], null],
    ['', ['a'], null],
    ['notes', [], null],
  ])('of %j among %j is %j', (word, known, meant) => {
    expect(nearest(word, known)).toBe(meant);
  });
});
