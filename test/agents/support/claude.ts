// The real Claude that is installed in test/agents, and its environment for the stand-in model.
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { TestContext } from 'vitest';

export interface InstalledClaude {
  /** The executable, in the SDK's package for this platform. */
  readonly program: string;
  /** The module of the SDK. */
  readonly sdk: string;
}

export const NOT_INSTALLED = 'the packages of test/agents are not installed (`node scripts/setup.js test/agents`)';

/** The folder with the `node_modules` of the agents. */
export const packageFolder = join(import.meta.dirname, '..');

/** Returns where Claude is, or skips the test with the reason. */
export function claudeOrSkip(context: TestContext): InstalledClaude {
  const found = findClaude();
  if (found === null) context.skip(NOT_INSTALLED);
  return found as InstalledClaude;
}

/** Makes the home of a user with these settings for Claude. */
export function userHome(root: string, settings: object = {}): string {
  const home = mkdtempSync(join(root, 'home-'));
  mkdirSync(join(home, '.claude'), { mode: 0o700 });
  writeFileSync(join(home, '.claude', 'settings.json'), JSON.stringify(settings));
  return home;
}

/** Finds Claude in the same way as the SDK. `from`: a file of the package that depends on the SDK. */
export function findClaude(from: string | URL = import.meta.url): InstalledClaude | null {
  const { platform, arch } = process;
  const names = platform === 'linux' ? [`linux-${arch}`, `linux-${arch}-musl`] : [`${platform}-${arch}`];
  try {
    const sdk = createRequire(from).resolve('@anthropic-ai/claude-agent-sdk');
    const { resolve } = createRequire(sdk);
    for (const name of names) {
      try {
        const program = resolve(`@anthropic-ai/claude-agent-sdk-${name}/claude${platform === 'win32' ? '.exe' : ''}`);
        if (existsSync(program)) return { program, sdk };
      } catch {
        // It may be built for another libc.
      }
    }
  } catch {
    // The SDK is not installed either.
  }
  return null;
}

/**
 * These variables save a sixth of Claude's processor time and do not change what it does. The stand-in model needs no certificates. A
 * second compiler and more threads for the garbage collector do not pay off in a process that runs for seconds.
 */
const QUICK_START = {
  CLAUDE_CODE_CERT_STORE: 'bundled',
  BUN_JSC_useDFGJIT: '0',
  BUN_JSC_numberOfGCMarkers: '1',
};

/** Everything that Claude needs, and nothing of the user who runs the tests: no settings, keys or sessions. */
export function claudeEnvironment(model: { readonly url: string }, home: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOME: home,
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: 'sk-fake',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
    ...QUICK_START,
  };
}

/** A line of `--output-format stream-json`: the fields that tests read. */
export interface ClaudeLine {
  readonly type: string;
  readonly subtype?: string;
  readonly session_id?: string;
  readonly result?: string;
  readonly is_error?: boolean;
  readonly terminal_reason?: string;
  readonly usage?: { readonly input_tokens: number; readonly output_tokens: number };
  readonly [other: string]: unknown;
}

export interface ClaudeRun {
  readonly code: number | null;
  readonly lines: readonly ClaudeLine[];
  /** The last line of the type `result`. */
  readonly result: ClaudeLine;
  readonly errors: string;
}

/** Runs `claude -p` to its end. */
export async function runClaude(
  claude: InstalledClaude,
  args: readonly string[],
  options: { readonly cwd: string; readonly env: Record<string, string> },
): Promise<ClaudeRun> {
  const child: ChildProcessByStdio<null, Readable, Readable> = spawn(
    claude.program,
    ['-p', ...args, '--output-format', 'stream-json', '--verbose'],
    { ...options, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const [output, errors, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve, reject) => child.once('close', resolve).once('error', reject)),
  ]);
  const lines = output.split('\n').flatMap((line) => (line === '' ? [] : (JSON.parse(line) as ClaudeLine)));
  const result = lines.findLast(({ type }) => type === 'result') ?? { type: 'result', result: `none: ${errors}` };
  return { code, lines, result, errors };
}

/** Sends prompts to one process of `claude -p`, each after the answer to the one before. Throws if one fails. */
export async function talkToClaude(
  claude: InstalledClaude,
  prompts: readonly string[],
  { id, ...options }: { readonly id: string; readonly cwd: string; readonly env: Record<string, string> },
): Promise<void> {
  const formats = ['--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'];
  const child = spawn(claude.program, ['-p', '--session-id', id, ...formats], {
    ...options,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  try {
    for (const content of prompts) {
      child.stdin.write(`${JSON.stringify({ type: 'user', message: { role: 'user', content } })}\n`);
      await resultIn(lines);
    }
    child.stdin.end();
    await ended;
  } finally {
    child.kill('SIGKILL');
  }
}

/** Reads to the result of a prompt. */
async function resultIn(lines: AsyncIterator<string>): Promise<void> {
  for (;;) {
    const { value, done } = await lines.next();
    if (done) throw new Error('Claude ended before it answered');
    const line = JSON.parse(value) as ClaudeLine;
    if (line.type !== 'result') continue;
    if (line.is_error) throw new Error(`Claude failed: ${line.result}`);
    return;
  }
}

async function text(stream: Readable): Promise<string> {
  return Buffer.concat(await stream.toArray()).toString();
}
