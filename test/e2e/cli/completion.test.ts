import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, type TestContext, test } from 'vitest';
import { fillHome, schemaOf } from '../../contracts/older-database.ts';
import { PROGRAM } from '../../program.ts';
import { CliHome, preload } from './process.ts';

const home = new CliHome();
afterAll(() => home.remove());

/** Keys that a careless script would run, split or expand. */
const ODD = [
  'two words',
  `it's "odd"`,
  '$(touch pwned)',
  '`touch pwned`',
  'slack:C0:1',
  'a=b',
  '*',
  '~',
  'ü-日本',
  '-dash',
];
const bin = join(home.path, 'bin');

beforeAll(async () => {
  mkdirSync(bin);
  // The program under its name, with the Node of this test.
  writeFileSync(join(bin, 'throughline'), `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`);
  chmodSync(join(bin, 'throughline'), 0o755);
  symlinkSync(join(bin, 'throughline'), join(bin, 'tl'));
  await home.here.ok('send', 'plain', 'hello');
  const records = JSON.parse(await home.here.ok('export', 'plain'));
  for (const key of ODD) {
    await home.start(['import', '-', '--key', key], { input: JSON.stringify(records) }).ended;
  }
  await home.here.ok('task', 'run', 'Do it', '--name', 'my task', '--max-iterations', '1');
});

function shell(name: string, args: readonly string[], env: Record<string, string> = {}): string {
  const path = `${bin}:${dirname(process.execPath)}:${process.env.PATH}`;
  const { stdout, stderr, error } = spawnSync(name, args, {
    ...{ encoding: 'utf8', cwd: home.path, env: { ...home.environment(), PATH: path, ...env } },
  });
  expect({ stderr, error }).toEqual({ stderr: '', error: undefined });
  return stdout;
}

const has = (name: string) => spawnSync(name, ['--version']).error === undefined;

function needs(program: string, context: TestContext): void {
  if (!has(program)) context.skip(`there is no ${program}`);
}
const lines = (text: string) => text.split('\n').slice(0, -1);

/** The words that bash would offer. The function is called as readline calls it. */
function inBash(line: string): string[] {
  const script = `
    source <(throughline completion bash)
    COMP_LINE=$1 COMP_POINT=\${#1}
    complete -p throughline >/dev/null && _throughline throughline
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  return lines(shell('bash', ['--norc', '-c', script, 'bash', line])).filter((word) => word !== '');
}

describe('in bash', () => {
  beforeEach((context) => needs('bash', context));

  test('completes commands, subcommands, options and their values', () => {
    expect(inBash('throughline sen')).toEqual(['send']);
    expect(inBash('throughline task re')).toEqual(['retry', 'report']);
    expect(inBash('throughline send plain --per')).toEqual(['--permissions']);
    expect(inBash('throughline send plain --qui')).toEqual(['--quiet']);
    expect(inBash('throughline send plain --restore ')).toEqual(['required', 'auto', 'off']);
    expect(inBash('throughline completion z')).toEqual(['zsh']);
    expect(inBash('throughline ')).not.toContain('complete');
    expect(inBash('FOO=1 throughline help sen')).toEqual(['send']);
  });

  test('completes agents, tasks and keys', () => {
    expect(inBash('throughline send plain --agent ')).toEqual(expect.arrayContaining(['scripted', 'forgetful']));
    expect(inBash('throughline send plain --agent=for')).toEqual(['forgetful']);
    expect(inBash('throughline task show my')).toEqual(['my\\ task']);
    expect(inBash('throughline show pl')).toEqual(['plain']);
    expect(inBash(`throughline --home ${home.path}/elsewhere show pl`)).toEqual([]);
  });

  test('quotes odd keys so that the shell reads them back unchanged, and runs no command in them', () => {
    const words = inBash('throughline show ');
    const back = words.map((word) => shell('bash', ['--norc', '-c', `printf %s ${word}`]));
    expect(back).toEqual(expect.arrayContaining(['plain', ...ODD.filter((key) => key !== '-dash')]));
    expect(existsSync(join(home.path, 'pwned'))).toBe(false);
    expect(inBash('throughline show slack:C')).toEqual(['C0\\:1']);
    expect(inBash('throughline show "two')).toEqual(['two words']);
    expect(inBash('throughline show -- -d')).toEqual(['-dash']);
  });

  test('leaves files to the shell, and offers nothing for an unknown command', () => {
    const { stdout } = spawnSync(join(bin, 'throughline'), ['complete', 'bash', '--', 'throughline import '], {
      ...{ encoding: 'utf8', env: home.environment() },
    });
    expect(stdout).toBe(':file\n');
    expect(inBash('throughline nonsense ')).toEqual([]);
  });
});

test('zsh gets the names unquoted, with their descriptions', (context) => {
  needs('zsh', context);
  const script = `
    compdef() { }
    source <(throughline completion zsh)
    compadd() { print -rl -- "\${names[@]}" -- "\${shown[1]}" }
    words=(throughline show '') CURRENT=3 PREFIX=
    _throughline`;
  const shown = lines(shell('zsh', ['-f', '-c', script]));
  expect(shown).toEqual(expect.arrayContaining(['plain', ...ODD]));
  expect(shown.at(-1)).toMatch(/ {2}-- /);
  expect(existsSync(join(home.path, 'pwned'))).toBe(false);
});

test('fish gets the names unquoted', (context) => {
  needs('fish', context);
  const script = 'throughline completion fish | source; complete -C "throughline show "; complete -C "throughline imp"';
  const shown = lines(shell('fish', ['--no-config', '-c', script]));
  const names = shown.map((line) => line.split('\t')[0]);
  expect(names).toEqual(expect.arrayContaining(['plain', 'import', 'slack:C0:1']));
  expect(existsSync(join(home.path, 'pwned'))).toBe(false);
});

describe('completing', () => {
  test('writes no file of the data home, and creates no data home', async () => {
    const data = join(home.path, 'home');
    const files = () => readdirSync(data, { recursive: true }).toSorted();
    const [before, database] = [files(), readFileSync(join(data, 'throughline.db'))];
    await home.here.ok('complete', 'zsh', '--', 'show', '');
    expect(files()).toEqual(before);
    expect(readFileSync(join(data, 'throughline.db')).equals(database)).toBe(true);
    await home.ok('complete', 'zsh', '--', '--home', 'fresh', 'show', '');
    expect(existsSync(join(home.path, 'fresh'))).toBe(false);
  });

  test('reads an older data home without an upgrade', async () => {
    const file = fillHome(join(home.path, 'older'), 12);
    expect(await home.ok('complete', 'zsh', '--', '--home', 'older', 'show', 'no')).toMatch(/^:words\nnotes/);
    expect(schemaOf(file)).toBe(12);
  });

  test('has no time limit for reading the data home; only a server has one', async () => {
    // In this process every timer of a second or more fires at once.
    const fastTimers = `const later = setTimeout;
      globalThis.setTimeout = (act, ms, ...args) => {
        if (ms < 1000) return later(act, ms, ...args);
        queueMicrotask(act);
        return later(() => {});
      };`;
    const { stdout } = await home.start(['complete', 'zsh', '--', 'show', 'pl'], {
      env: preload('complete', fastTimers),
    }).ended;
    expect(stdout).toMatch(/^:words\nplain/);
  });

  test('prints no error if the settings or the database cannot be read, or a server cannot be reached', async () => {
    writeFileSync(join(home.path, 'broken.json'), '{');
    mkdirSync(join(home.path, 'damaged'));
    writeFileSync(join(home.path, 'damaged/throughline.db'), 'no database');
    for (const args of [
      ['--config', 'broken.json'],
      ['--home', 'damaged'],
      ['--server', 'http://127.0.0.1:9'],
    ]) {
      expect(await home.run('complete', 'zsh', '--', ...args, 'show', '')).toMatchObject({ code: 0, stderr: '' });
    }
  });
});

describe('a misspelt name', () => {
  test.each([
    [['show', 'plane'], 4, 'Did you mean "plain"?'],
    [['task', 'show', 'my tsak'], 4, 'Did you mean "my task"?'],
    [['send', 'plain', 'x', '--agent', 'scriptd'], 3, 'Did you mean "scripted"?'],
    [['agents', 'install', 'claud'], 4, 'Did you mean "claude"?'],
    [['cancel', 'plian'], 4, 'Did you mean "plain"?'],
    [['keys', 'creat', 'x'], 2, "Unknown command 'creat'. Did you mean create?"],
    [['task', 'lst'], 2, "Unknown command 'lst'. Did you mean list?"],
    [['task', '--as', 'somebody', 'lst'], 2, "Unknown command 'lst'. Did you mean list?"],
    [['shwo', 'x'], 2, "Unknown command 'shwo'. Did you mean show?"],
  ])('%j is refused with a suggestion', async (args, code, sentence) => {
    const failed = await home.here.run(...args);
    expect(failed.code).toBe(code);
    expect(failed.stderr).toContain(sentence);
  });

  test('of the scripted agent gets a suggestion without any configured agents, and the name is completed', async () => {
    writeFileSync(join(home.path, 'none.json'), '{}');
    const failed = await home.run('--config', 'none.json', 'send', 'plain', 'x', '--agent', 'scriptd');
    expect(failed.stderr).toContain('Did you mean "scripted"?');
    expect(inBash('throughline --config none.json send plain --agent scr')).toEqual(['scripted']);
  });

  test('gets no suggestion if no name is similar', async () => {
    expect((await home.here.run('show', 'something-else')).stderr).not.toContain('Did you mean');
  });
});

test('retry with the key of a conversation repeats its last turn', async () => {
  const { code, stdout } = await home.here.run('retry', 'plain');
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'Noted: hello\n' });
});
