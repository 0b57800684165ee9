import { chmodSync, chownSync, lchownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { readSetup } from './settings-file.ts';

const NAME = 'throughline.config.json';
const NOBODY = 65_534;
const before = process.cwd();
const { THROUGHLINE_CONFIG: named } = process.env;

let folder: string;
let home: string;
let file: string;
beforeEach(() => {
  delete process.env.THROUGHLINE_CONFIG;
  folder = temporaryFolder();
  home = join(folder, 'home');
  mkdirSync(home);
  file = join(folder, NAME);
  process.chdir(folder);
});
afterEach(() => {
  process.chdir(before);
  if (named !== undefined) process.env.THROUGHLINE_CONFIG = named;
});

/** Settings that start this program. */
const write = (path: string, program = '/planted') =>
  writeFileSync(path, JSON.stringify({ agents: { mine: { adapter: 'acp', command: [program] } } }));
const read = (config?: string) => readSetup({ home, ...(config !== undefined && { config }) });

describe('settings in the working directory, which may be the temporary folder of all users', () => {
  test('count if they are ours, before those in the data home', () => {
    write(join(home, NAME), '/in-the-home');
    expect(read().file).toBe(join(home, NAME));
    write(file);
    expect(read()).toMatchObject({ file, base: folder });
  });

  test('are refused if every user can change them', () => {
    write(file);
    chmodSync(file, 0o666);
    expect(() => read()).toThrow(`Every user can change the settings file ${file}, and name programs`);
    expect(read(file).file).toBe(file);
  });

  test('are refused if another user made them, or a link to them, unless they are named', (context) => {
    if (process.getuid?.() !== 0) context.skip('only root can give a file to another user');
    write(file);
    chownSync(file, NOBODY, NOBODY);
    expect(() => read()).toThrow(`The settings file ${file} belongs to another user, who can name programs`);
    expect(() => read()).toThrow(
      expect.objectContaining({ code: 'refused', hint: expect.stringContaining('--config') }),
    );
    expect(read(file).file).toBe(file);
    process.env.THROUGHLINE_CONFIG = file;
    expect(read().file).toBe(file);
    delete process.env.THROUGHLINE_CONFIG;

    const ours = join(home, 'ours.json');
    write(ours);
    process.chdir(home);
    symlinkSync(ours, join(home, NAME));
    expect(read().file).toBe(join(home, NAME));
    lchownSync(join(home, NAME), NOBODY, NOBODY);
    expect(() => read()).toThrow('belongs to another user');
  });
});
