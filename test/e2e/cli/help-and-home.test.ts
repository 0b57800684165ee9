import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };
import { COMMANDS } from '../../../src/faces/cli/commands.ts';
import { PROGRAM } from '../../program.ts';
import { CliHome, Running } from './process.ts';

const home = new CliHome();
afterAll(() => home.remove());

/** The commands that the help lists. */
const SHOWN = Object.entries(COMMANDS).filter(([, { isHidden }]) => !isHidden);

describe('help', () => {
  test('names every command, and the exit codes', async () => {
    const text = await home.here.ok('--help');
    const lines = text.split('\n').map((line) => line.trim().replace(/ {2,}/, '  '));
    for (const [name, { summary }] of SHOWN) expect(lines).toContain(`${name}  ${summary}`);
    expect(text).toMatch(/7 interrupted,\s+130\s+cancelled/);
  });

  test.each(SHOWN.map(([name]) => name))('of %s has examples of that command, and needs no data home', async (name) => {
    const nowhere = { env: { THROUGHLINE_HOME: '/dev/null/nowhere', THROUGHLINE_CONFIG: '/dev/null/nowhere' } };
    const { code, stdout, stderr } = await home.start([name, '--help'], nowhere).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [, examples = ''] = stdout.split('Examples:\n');
    const lines = examples.trim().split('\n');
    expect(lines.length).toBeGreaterThanOrEqual(2);
    for (const line of lines) expect(line).toMatch(new RegExp(`^\\s*\\$ .*throughline ${name}`));
  });

  test('is also a command', async () => {
    expect(await home.here.ok('help')).toBe(await home.here.ok('--help'));
    expect(await home.here.ok('help', 'send')).toBe(await home.here.ok('send', '--help'));
  });
});

describe('where the shell has no program "throughline"', () => {
  // npm adds such folders to the path of what it runs: the shell does not have them.
  const env = { PATH: `/work/node_modules/.bin:${process.env.PATH}` };
  const project = join(home.path, 'project');
  const npx = { env, cwd: join(project, 'src') };
  beforeAll(() => {
    const bin = join(project, 'node_modules/.bin');
    for (const folder of [bin, npx.cwd]) mkdirSync(folder, { recursive: true });
    symlinkSync(PROGRAM, join(bin, 'throughline'));
  });

  test.each([
    ['a hint', ['show', 'nothing'], 'See "npx throughline list".'],
    ['a hint with --json', ['show', 'nothing', '--json'], 'See \\"npx throughline list\\".'],
    ['a note', ['list'], 'Start one with "npx throughline send KEY PROMPT".'],
    ['wrong use', ['list', '--wrong'], 'See "npx throughline list --help".'],
  ])('%s names npx', async (_, args, hint) => {
    expect((await home.start(args, npx).ended).stderr).toContain(hint);
    expect((await home.start(args).ended).stderr).toContain(hint.replace('npx ', ''));
  });

  test('a hint names npx in a checkout, and where npx would ask the registry, the program', async () => {
    const checkout = join(home.path, 'checkout');
    const other = join(checkout, 'other');
    mkdirSync(join(checkout, 'src'), { recursive: true });
    mkdirSync(other);
    writeFileSync(join(checkout, 'package.json'), '{ "name": "throughline" }');
    writeFileSync(join(other, 'package.json'), '{ "name": "other" }');
    const hintIn = async (cwd: string) => (await home.start(['show', 'nothing'], { env, cwd }).ended).stderr;
    expect(await hintIn(join(checkout, 'src'))).toContain('See "npx throughline list".');
    for (const folder of [other, home.path]) expect(await hintIn(folder)).toContain(`See "${PROGRAM} list".`);
  });

  test('a hint is also printed where the working directory was deleted', async () => {
    const script = 'rmdir "$PWD" && exec "$0" "$1" show nothing --home "$2"';
    const gone = join(home.path, 'gone');
    mkdirSync(gone);
    const args = [script, process.execPath, PROGRAM, join(home.path, 'home')];
    const options = { node: '/bin/sh', env: { ...home.environment(), ...env }, cwd: gone };
    const { stderr } = await new Running('-c', args, options).ended;
    expect(stderr).toContain('There is no conversation "nothing". See');
  });

  test.each(['', 'settings.json'])(
    'a deleted working directory is reported in words (settings: "%s")',
    async (file) => {
      const gone = join(home.path, 'gone');
      mkdirSync(gone);
      const script = 'rmdir "$PWD" && exec "$0" "$1" list --home "$2"';
      const args = [script, process.execPath, PROGRAM, join(home.path, 'home')];
      const variables = { ...home.environment(), THROUGHLINE_CONFIG: file };
      const { code, stderr } = await new Running('-c', args, { node: '/bin/sh', env: variables, cwd: gone }).ended;
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr:
          'throughline: The working directory of this command was deleted. Change to another ("cd"), and run it again.\n',
      });
    },
  );

  test('the examples of the help name npx', async () => {
    const { stdout } = await home.start(['send', '--help'], npx).ended;
    expect(stdout).toContain('$ npx throughline send notes "The codeword is osprey"');
    expect(stdout).toContain('git diff | npx throughline send review');
    expect(stdout).not.toMatch(/\$ (?:.*\| )?throughline/);
  });
});

describe('a hint names the data that the command was about', () => {
  const other = () => join(home.path, 'an other');
  test.each<[string, () => string[], () => string]>([
    ['its data home', () => ['list', '--home', other()], () => `"throughline --home '${other()}' send KEY PROMPT"`],
    ['its store', () => ['list', '--store', 'sqlite:x.db'], () => '"throughline --store sqlite:x.db send KEY PROMPT"'],
    ['its owner', () => ['show', 'no', '--as', 'ann'], () => 'See "throughline --as ann list".'],
    ['nothing that the environment says', () => ['show', 'no', '--config', home.config], () => '"throughline list"'],
    ['nothing for the help', () => ['list', '--home', 'x', '--wrong'], () => 'See "throughline list --help".'],
  ])('%s', async (_, args, hint) => {
    expect((await home.run(...args())).stderr).toContain(hint());
  });

  test('the command of a hint runs as it is printed', async () => {
    const { stderr } = await home.run('list', '--home', other());
    const [, command = ''] = /"(throughline .* send) KEY PROMPT"/.exec(stderr) ?? [];
    const words = command.replaceAll("'", '').split(` --home ${other()} `);
    expect(words).toEqual(['throughline', 'send']);
    expect(await home.ok('--home', other(), 'send', 'notes', 'The codeword is osprey')).toContain('osprey');
    expect(await home.lines('--home', other(), 'list')).toMatchObject([{ key: 'notes' }]);
    expect(await home.lines('list')).toEqual([]);
  });
});

test('the version is that of the package', async () => {
  expect(await home.ok('--version')).toBe(`${packageJson.version}\n`);
});

test('the program of a checkout runs the sources; the program of all other tests is bundled', async () => {
  const program = resolve(import.meta.dirname, '../../../bin/throughline.js');
  expect(PROGRAM).not.toBe(program);
  const options = { env: home.environment(), cwd: home.path };
  expect(await new Running(program, ['send', 'sources', 'The codeword is amber.'], options).ended).toMatchObject({
    code: 0,
    stdout: 'Noted: The codeword is amber.\n',
  });
});

describe('the data home', () => {
  test('is that of --home, before or after the command', async () => {
    const otherHome = join(home.path, 'other');
    await home.ok('--home', otherHome, 'send', 'kept', 'hello');
    expect(existsSync(join(otherHome, 'throughline.db'))).toBe(true);
    expect(await home.ok('show', 'kept', '--home', otherHome)).toContain('Noted: hello');
    expect((await home.run('show', 'kept')).code).toBe(4);
  });

  test('is the XDG data directory when none is named', async () => {
    const env = { THROUGHLINE_HOME: '', XDG_DATA_HOME: join(home.path, 'xdg') };
    expect((await home.start(['send', 'x', 'hello'], { env }).ended).code).toBe(0);
    expect(existsSync(join(home.path, 'xdg', 'throughline', 'throughline.db'))).toBe(true);
  });

  test('that is a file is refused in one line without a stack', async () => {
    const file = join(home.path, 'a-file');
    writeFileSync(file, 'not a directory');
    const { code, stderr } = await home.here.run('list', '--home', file);
    expect(code).toBe(1);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toMatch(/^throughline: .*a-file/);
    expect(readFileSync(file, 'utf8')).toBe('not a directory');
  });

  describe('in /proc, where no directory can be created,', () => {
    beforeEach((context) => {
      if (process.platform !== 'linux') context.skip('needs /proc');
    });

    // Node's recursive mkdir never returns there, so each runs in a process of its own.
    test.each([
      [
        ['list', '--home', '/proc/nowhere/home'],
        /^throughline: Cannot create the data home .* with --home, or in THROUGHLINE_HOME/,
      ],
      [
        ['serve', '--home', '/proc/nowhere'],
        /^throughline: Cannot create the directory \/proc\/nowhere\/server\. Remove/,
      ],
      [['serve', '--home', '/proc'], /^throughline: Cannot create the directory \/proc\/server\. Remove/],
      [
        ['list', '--store', 'sqlite:/proc/nowhere/x.db'],
        /^throughline: Cannot open \/proc\/nowhere\/x\.db .* set another/,
      ],
      [
        ['agents', 'install', 'claude', '--home', '/proc/x'],
        /^throughline: Cannot create the data home \/proc\/x\. Name a directory /,
      ],
      [
        ['agents', 'install', 'claude', '--home', '/proc'],
        /^throughline: Cannot write to \/proc\/agents \(ENOENT\)\. Use /,
      ],
    ])('is refused: %j', async (args, sentence) => {
      expect(await home.run(...args)).toMatchObject({ code: 1, stderr: expect.stringMatching(sentence) });
    });

    test('is also refused for sandboxes', async () => {
      const settings = join(home.path, 'sandboxes.json');
      const agents = { scripted: { adapter: 'scripted' } };
      writeFileSync(settings, JSON.stringify({ agents, defaultAgent: 'scripted', sandbox: { root: '/proc/nowhere' } }));
      const { code, stderr } = await home.run('send', 'x', 'hello', '--config', settings);
      expect([code, stderr]).toEqual([2, expect.stringMatching(/Cannot create the sandbox directory \/proc\/nowhere/)]);
    });
  });

  test('without settings has the scripted agent, if it is named', async () => {
    // An empty PATH: a Claude that is installed on this machine is not found.
    const bare = { PATH: '', THROUGHLINE_HOME: join(home.path, 'bare'), THROUGHLINE_CONFIG: '' };
    const { code, stdout } = await home.start(['send', 'x', 'hello', '--agent', 'scripted'], { env: bare }).ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Noted: hello\n' });
  });
});

test('invalid settings are refused with the name of the setting', async () => {
  const file = join(home.path, 'broken.json');
  writeFileSync(file, '{"agents":{"x":{"adapter":"none"}}}');
  const { code, stderr } = await home.here.run('list', '--config', file, '--json');
  expect(code).toBe(2);
  expect(JSON.parse(stderr).error).toMatchObject({
    code: 'invalid',
    message: expect.stringContaining('agents.x.adapter'),
  });
});

test.each<[string, object, RegExp]>([
  ['an option', { options: { permisionMode: 'plan' } }, /"agents\.x\.options\.permisionMode" is not known/],
  ['a key beside the options', { agent: 'claude' }, /"agents\.x\.agent" is not known/],
  ['a value', { command: 'claude' }, /"agents\.x\.command" must be a list/],
])('%s of one agent that is wrong concerns only those who use that agent', async (what, mistake, says) => {
  const file = join(home.path, 'one-wrong.json');
  const agents = { scripted: { adapter: 'scripted' }, x: { adapter: 'claude-sdk', ...mistake } };
  writeFileSync(file, JSON.stringify({ defaultAgent: 'scripted', agents }));
  const wrong = new RegExp(`${says.source}.*one-wrong\\.json`);
  expect(await home.here.ok('send', what, 'Hello.', '--config', file)).toBe('Noted: Hello.\n');
  expect(await home.here.ok('agents', '--config', file)).toMatch(wrong);
  expect((await home.here.run('doctor', '--config', file)).stdout).toMatch(says);
  const named = await home.here.run('send', what, 'Hello.', '--agent', 'x', '--config', file);
  expect(named).toMatchObject({ code: 2, stderr: expect.stringMatching(wrong) });
});

test('"agents" says once what to do about a missing Claude', async () => {
  const file = join(home.path, 'claude.json');
  const agents = { claude: { adapter: 'claude-sdk' }, cli: { adapter: 'claude-cli', command: ['no-such-claude'] } };
  writeFileSync(file, JSON.stringify({ agents }));
  const { stdout } = await home.start(['agents', '--config', file], { env: { PATH: '' } }).ended;
  expect(stdout.split('\n')).toEqual([
    `claude (claude-sdk): Claude was not found. Run "throughline --config ${file} agents install claude", or put the program "claude" on PATH.`,
    'cli (claude-cli): The program no-such-claude was not found or is not executable. Check the agent\'s "command".',
    '',
  ]);
});
