// Runs with every test file (vitest.config.ts): puts its temporary folders into memory or onto the disk.
import { join, relative } from 'node:path';
import { expect } from 'vitest';
import { folderOf } from '../scripts/test-folder.js';

const root = join(import.meta.dirname, '..');
process.env.TMPDIR = folderOf(relative(root, expect.getState().testPath ?? ''), process.env);
