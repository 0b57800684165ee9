import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { PROGRAM } from '../program.ts';
import { ROOT, run, succeeds } from './packed.ts';

const folder = mkdtempSync(join(tmpdir(), 'throughline-compiled-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a program in the way in which the package runs its own. Returns its output and exit code. */
async function ran(source: string) {
  const main = join(folder, 'main.cjs');
  writeFileSync(main, source);
  const start = `require(${JSON.stringify(join(ROOT, 'bin/compiled.js'))}).start(${JSON.stringify(main)});`;
  const { code, stdout, stderr } = await run(process.execPath, ['-e', start]);
  return { code, stdout, stderr };
}

// Such listeners end agents and restore the terminal.
test.each([
  ['has nothing left to do', ''],
  ['ends itself', 'process.exit();'],
])('listeners for the end of a command are called when the command %s', async (_, how) => {
  const later = `setTimeout(() => {
    process.on('exit', () => console.log('heard'));
    process.exitCode = 3;
    process.stdout.write('x'.repeat(100_000));
    ${how}
  }, 1);`;
  expect(await ran(later)).toEqual({ code: 3, stdout: `${'x'.repeat(100_000)}heard\n`, stderr: '' });
});

test('an uncaught error ends a command as it ends Node', async () => {
  const ended = await ran(
    `setTimeout(() => { process.on('exit', () => console.log('heard')); throw new Error('no'); });`,
  );
  expect(ended).toMatchObject({ code: 1, stdout: 'heard\n', stderr: expect.stringContaining('Error: no') });
});

// Among V8's young objects it would use up their space, and the garbage collector would run before a command has started its agent.
test('the text of a long file is kept apart from the young objects of V8', async () => {
  const program = `
    const spaces = require('node:v8').getHeapSpaceStatistics();
    console.log(spaces.find(({ space_name }) => space_name === 'new_large_object_space').space_used_size >= 2 ** 17);
    /* ${'x'.repeat(70_000)} */`;
  expect(await ran(program)).toEqual({ code: 0, stdout: 'true\n', stderr: '' });
});

// Before a command starts its agent's program, it loads only the code that it needs until then (scripts/bundle.js).
test('a prompt loads the chunk for turns, and not the chunk for what turns seldom use', async () => {
  const env = { THROUGHLINE_HOME: join(folder, 'commands'), NODE_COMPILE_CACHE: join(folder, 'cache') };
  await succeeds(process.execPath, [PROGRAM, 'send', 'notes', 'The codeword is amber.', '--agent', 'scripted'], {
    env,
  });
  const cached = globSync('cache/*/throughline/for-turn-*', { cwd: folder }).map((file) => basename(file));
  expect(cached.filter((name) => name.startsWith('for-turn-later-'))).toHaveLength(1);
  expect(cached.filter((name) => name.startsWith('for-turn-seldom-'))).toEqual([]);
});

test('an engine loads the code that runs turns with its first turn', async () => {
  const program = `
    import { createRequire } from 'node:module';
    import { open } from ${JSON.stringify(join(dirname(PROGRAM), '../dist/index.js'))};
    const isLoaded = () => Object.keys(createRequire(import.meta.url).cache).some((file) => file.includes('/for-turn-later-'));
    const settings = { agents: { scripted: { adapter: 'scripted' } } };
    const tl = await open({ home: ${JSON.stringify(join(folder, 'library'))}, settings });
    const opened = isLoaded();
    await tl.conversation('notes', { agent: 'scripted' }).ask('The codeword is amber.');
    console.log(JSON.stringify({ opened, asked: isLoaded() }));
    await tl.close();`;
  const printed = await succeeds(process.execPath, ['--input-type=module', '-e', program]);
  expect(JSON.parse(printed)).toEqual({ opened: false, asked: true });
});
