import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, type TestContext, test } from 'vitest';
import { CliHome } from './process.ts';

// Node runs what is in its compile cache. Another user must not be able to put anything there.

let home: CliHome;
/** The home of a user, in a place where only this user and root can write: the temporary folder is not one. */
let user: string;
beforeEach(() => {
  home = new CliHome();
  user = mkdtempSync(join(homedir(), '.throughline-test-'));
});
afterEach(async () => {
  await home.remove();
  rmSync(user, { recursive: true, force: true });
});

const cache = () => join(user, '.cache/throughline');
const filesIn = (folder: string) => (existsSync(folder) ? readdirSync(folder, { recursive: true }).length : 0);

/** Runs a command as this user would, without a cache that the tests have chosen. */
async function list(env: Readonly<Record<string, string>> = {}) {
  const ended = await home.start(['list'], { env: { HOME: user, NODE_COMPILE_CACHE: '', ...env } }).ended;
  expect(ended).toMatchObject({ code: 0 });
}

function needsSafeHome(context: TestContext) {
  for (let folder = homedir(); folder !== dirname(folder); folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o022) !== 0)
      context.skip(`needs a home where others cannot write; in ${folder} they can`);
  }
}

test('a command keeps its compiled code in a folder of the user, and not in the temporary folder', async (context) => {
  needsSafeHome(context);
  const temporary = join(home.path, 'tmp');
  mkdirSync(join(temporary, 'node-compile-cache'), { recursive: true });
  await list({ TMPDIR: temporary });
  expect(readdirSync(temporary, { recursive: true })).toEqual(['node-compile-cache']);
  expect(filesIn(cache())).toBeGreaterThan(1);
  expect(statSync(cache()).mode & 0o777).toBe(0o700);
});

test('XDG_CACHE_HOME names the place', async (context) => {
  needsSafeHome(context);
  await list({ XDG_CACHE_HOME: join(user, 'elsewhere') });
  expect(filesIn(join(user, 'elsewhere/throughline'))).toBeGreaterThan(1);
  expect(existsSync(join(user, '.cache'))).toBe(false);
});

const UNSAFE: [what: string, prepare: () => void][] = [
  ['can be read by others', () => mkdirSync(cache(), { recursive: true, mode: 0o755 })],
  [
    'can be written by others',
    () => {
      mkdirSync(cache(), { recursive: true });
      chmodSync(cache(), 0o777);
    },
  ],
  [
    'is a link',
    () => {
      mkdirSync(dirname(cache()));
      mkdirSync(join(user, 'target'), { mode: 0o700 });
      symlinkSync(join(user, 'target'), cache());
    },
  ],
  [
    'is in a folder where others can write',
    () => {
      mkdirSync(dirname(cache()));
      chmodSync(dirname(cache()), 0o1777);
    },
  ],
  [
    'is reached by a link through a folder where others can write',
    () => {
      mkdirSync(join(user, 'shared/inner'), { recursive: true });
      chmodSync(join(user, 'shared'), 0o777);
      symlinkSync(join(user, 'shared/inner'), dirname(cache()));
    },
  ],
];
test.each(UNSAFE)('no cache is used or written if the folder %s', async (_, prepare) => {
  prepare();
  const before = filesIn(user);
  await list();
  expect(filesIn(user)).toBe(before);
});

test('a command ends in a home where nothing can be created', async () => {
  await list({ HOME: '/proc' });
});

test.each([
  ['the folder', () => cache()],
  ['a folder above it', () => user],
])('no cache is used or written if %s belongs to another user', async (_, owned) => {
  mkdirSync(cache(), { recursive: true, mode: 0o700 });
  giveAway(owned());
  await list();
  expect(filesIn(cache())).toBe(0);
});

/** Only root can give a folder away. Others get the test of the rights instead. */
function giveAway(folder: string) {
  if (process.getuid?.() === 0) chownSync(folder, 65_534, 65_534);
  else chmodSync(folder, 0o770);
}
