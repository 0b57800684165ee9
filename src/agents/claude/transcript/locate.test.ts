import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { sandboxAt } from '../../../../test/contracts/agent-sandbox.ts';
import { temporaryFolder } from '../../../../test/temporary-folder.ts';
import { configDir, projectDir, type SessionStorage, slugOf, storageIn } from './locate.ts';

const ID = '01234567-89ab-4cde-8f01-23456789abcd';
let scratch = '';
beforeEach(() => {
  scratch = temporaryFolder();
});

describe('the name of a directory', () => {
  test('has a dash for every unit that is not a letter or digit', () => {
    expect(slugOf('/a b/_c.d/é𝒳/E9')).toBe('-a-b--c-d-----E9');
  });

  // Both names were made by Claude 2.1.325.
  test('longer than 200 is cut there, and the hash of the whole directory is appended', () => {
    const ascii = `/tmp/h10/w/${'abcdefghi'.repeat(24)}/${'xyz '.repeat(10)}end`;
    const other = `/tmp/h10/w/${'äbcdefghi'.repeat(14)}/${'日本𝒳 '.repeat(12)}end`;
    expect(slugOf(ascii)).toBe(`${ascii.replaceAll(/[^a-z0-9]/g, '-').slice(0, 200)}-sqm1v7`);
    expect(slugOf(other).slice(200)).toBe('-2ezi6r');
    expect(slugOf(`/${'x'.repeat(199)}`)).toBe(`-${'x'.repeat(199)}`);
  });
});

describe('the config directory', () => {
  test('is the agent’s own, never ours', () => {
    expect(configDir({ HOME: '/home/a' }, '/work')).toBe('/home/a/.claude');
    expect(configDir({ HOME: '/home/a', CLAUDE_CONFIG_DIR: '/c' }, '/work')).toBe('/c');
  });

  test('starts at the working directory when it is relative, and is that directory when it is empty', () => {
    expect(configDir({ HOME: '/home/a', CLAUDE_CONFIG_DIR: 'c/d' }, '/elsewhere')).toBe('/elsewhere/c/d');
    expect(configDir({ HOME: '/home/a', CLAUDE_CONFIG_DIR: '' }, '/work')).toBe('/work');
  });
});

/** Where Claude stores a session with this environment. */
async function storage(env: Record<string, string>, cwd: string): Promise<SessionStorage> {
  return storageIn({ ...sandboxAt(cwd), home: env.HOME ?? '/nowhere' }, env);
}

describe('a session’s file', () => {
  test('is in the assigned folder only when a config directory is set as well, and the name is valid', () => {
    const env = { HOME: '/h', CLAUDE_CONFIG_DIR: '/c' };
    const named = (name: string) => projectDir({ ...env, CLAUDE_CODE_PROJECT_DIR_NAME: name }, '/w/x');
    expect(named('my_Name-1')).toBe('/c/projects/my_Name-1');
    for (const bad of ['', 'a b', '../x', 'COM1', 'x'.repeat(65)]) expect(named(bad)).toBe('/c/projects/-w-x');
    expect(projectDir({ HOME: '/h', CLAUDE_CODE_PROJECT_DIR_NAME: 'ok' }, '/w/x')).toBe('/h/.claude/projects/-w-x');
  });

  test('is below the config directory, in the folder of the working directory', async () => {
    const env = { HOME: scratch };
    const file = (await storage(env, '/w/x')).fileOf(ID);
    expect(file?.name).toBe(join(projectDir(env, '/w/x'), `${ID}.jsonl`));
    expect(await file?.stat()).toBeNull();
  });

  test('is null for an invalid id', async () => {
    const { fileOf } = await storage({ HOME: scratch }, '/w');
    for (const id of ['', '../x', 'a/b', '.hidden', 'a.b', 'x'.repeat(129), 'a\n']) expect(fileOf(id)).toBeNull();
  });

  test('with another hash after the long name is found by its id, unless there are two', async () => {
    const cwd = `/w/${'long-'.repeat(60)}`;
    const content = async () => {
      const read = await (await storage({ HOME: scratch }, cwd)).fileOf(ID)?.read({ most: 100 });
      return read && Buffer.from(read.bytes).toString();
    };
    const beside = (hash: string) => {
      const dir = join(scratch, '.claude/projects', `${slugOf(cwd).slice(0, 200)}-${hash}`);
      mkdirSync(dir, { recursive: true });
      writeFileSync(join(dir, `${ID}.jsonl`), hash);
    };
    expect(await content()).toBeNull();
    beside('another');
    expect(await content()).toBe('another');
    beside('third');
    expect(await content()).toBeNull();
    beside(slugOf(cwd).slice(201));
    expect(await content()).toBe(slugOf(cwd).slice(201));
  });
});

test('a config directory has one name, however it is set, and before and after it is created', async () => {
  const root = scratch;
  mkdirSync(join(root, 'user'));
  symlinkSync(join(root, 'user'), join(root, 'link'));
  const name = async (env: Record<string, string>) => (await storage(env, root)).name;
  const names = () =>
    Promise.all([
      name({ HOME: join(root, 'user') }),
      name({ HOME: join(root, 'link') }),
      name({ CLAUDE_CONFIG_DIR: join(root, 'link', '.claude'), HOME: '/nowhere' }),
      name({ CLAUDE_CONFIG_DIR: 'user/.claude' }),
    ]);
  const before = await names();
  mkdirSync(join(root, 'user', '.claude'));
  expect(new Set([...before, ...(await names())])).toEqual(new Set([`claude:${join(root, 'user', '.claude')}`]));
  expect(await name({ HOME: root })).not.toBe(before[0]);
});
