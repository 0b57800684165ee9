import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { storageName } from './storage-name.ts';

test('one config directory has one name, by whatever way it is found, and whether it is there yet', () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'storage-')));
  onTestFinished(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, 'user'));
  symlinkSync(join(root, 'user'), join(root, 'link'));
  const names = () => [
    storageName({ HOME: join(root, 'user') }, root),
    storageName({ HOME: join(root, 'link') }, root),
    storageName({ CLAUDE_CONFIG_DIR: join(root, 'link', '.claude'), HOME: '/nowhere' }, root),
    storageName({ CLAUDE_CONFIG_DIR: 'user/.claude' }, root),
  ];
  const before = names();
  mkdirSync(join(root, 'user', '.claude'));
  expect(new Set([...before, ...names()])).toEqual(new Set([`claude:${join(root, 'user', '.claude')}`]));
  expect(storageName({ HOME: root }, root)).not.toBe(before[0]);
});
