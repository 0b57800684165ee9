import { expect, test } from 'vitest';
import { denyOption, type PermissionKind } from './permission.ts';

const options = (...kinds: PermissionKind[]) => kinds.map((kind) => ({ optionId: kind, name: kind, kind }));

test('a no is for this once, where the agent offers that', () => {
  expect(denyOption(options('allow_once', 'reject_always', 'reject_once'))?.kind).toBe('reject_once');
  expect(denyOption(options('allow_once', 'reject_always'))?.kind).toBe('reject_always');
});

test('where the agent offers no no, there is none', () => {
  expect(denyOption(options('allow_once', 'allow_always'))).toBeNull();
  expect(denyOption([])).toBeNull();
});
