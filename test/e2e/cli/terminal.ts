import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process';
import { PROGRAM } from '../../program.ts';
import { type CliHome, pause } from './process.ts';

const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;

/** Runs the command in a terminal, made by `script` of util-linux or BSD. Null: this machine has no `script`. */
export function inTerminal(
  home: CliHome,
  args: readonly string[],
  env: Record<string, string> = {},
  node = process.execPath,
): Terminal | null {
  const command = [node, PROGRAM, ...args];
  const version = spawnSync('script', ['--version'], { encoding: 'utf8' });
  if (version.error) return null;
  const scriptArgs = version.stdout.includes('util-linux')
    ? ['-qec', command.map(quoted).join(' '), '/dev/null']
    : ['-q', '/dev/null', ...command];
  const all = { ...home.environment(), TERM: 'xterm', SHELL: '/bin/sh', ...env };
  return new Terminal(spawn('script', scriptArgs, { cwd: home.path, env: all }));
}

export class Terminal {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<{ code: number | null; text: string }>;
  #text = '';

  constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#text += text;
    });
    child.stdin.on('error', () => {});
    this.ended = new Promise((resolve) => child.on('close', (code) => resolve({ code, text: this.#text })));
  }

  type(text: string): void {
    this.#child.stdin.write(text);
  }

  async until(pattern: RegExp): Promise<void> {
    for (const deadline = Date.now() + 120_000; Date.now() < deadline; await pause(10)) {
      if (pattern.test(this.#text)) return;
    }
    throw new Error(`the terminal never showed ${pattern}: ${JSON.stringify(this.#text)}`);
  }
}
