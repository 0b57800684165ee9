// The real Claude of test/agents, told to talk to the stand-in model.
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { TestContext } from 'vitest';

export interface InstalledClaude {
  /** The program inside of the SDK's package for this platform. */
  readonly program: string;
  /** The module of the SDK. */
  readonly sdk: string;
}

export const NOT_INSTALLED = 'the packages of test/agents are not installed (`node scripts/setup.js test/agents`)';

/** The folder whose node_modules has it. */
export const packageFolder = join(import.meta.dirname, '..');

/** Where it is, or skips the test with the reason. */
export function claudeOrSkip(context: TestContext): InstalledClaude {
  const found = findClaude();
  if (found === null) context.skip(NOT_INSTALLED);
  return found as InstalledClaude;
}

/** A home of a person who has settings of Claude's. */
export function userHome(root: string, settings: object = {}): string {
  const home = mkdtempSync(join(root, 'home-'));
  mkdirSync(join(home, '.claude'), { mode: 0o700 });
  writeFileSync(join(home, '.claude', 'settings.json'), JSON.stringify(settings));
  return home;
}

/** Found as the SDK finds it; `whose`: a file of the package that uses it. */
export function findClaude(whose: string | URL = import.meta.url): InstalledClaude | null {
  const { platform, arch } = process;
  const names = platform === 'linux' ? [`linux-${arch}`, `linux-${arch}-musl`] : [`${platform}-${arch}`];
  try {
    const sdk = createRequire(whose).resolve('@anthropic-ai/claude-agent-sdk');
    const { resolve } = createRequire(sdk);
    for (const name of names) {
      try {
        const program = resolve(`@anthropic-ai/claude-agent-sdk-${name}/claude${platform === 'win32' ? '.exe' : ''}`);
        if (existsSync(program)) return { program, sdk };
      } catch {
        // built for another libc, perhaps
      }
    }
  } catch {
    // not even the SDK is there
  }
  return null;
}

/**
 * Claude works as always with these, in five sixths of the processor time: the stand-in model needs no certificate, and a process that lives
 * for seconds does not get back what its second compiler and further threads of its garbage collector take.
 */
const QUICK_START = {
  CLAUDE_CODE_CERT_STORE: 'bundled',
  BUN_JSC_useDFGJIT: '0',
  BUN_JSC_numberOfGCMarkers: '1',
};

/** All that Claude needs, and nothing of ours: no settings, keys or sessions of whoever runs the tests. */
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

/** A line of `--output-format stream-json`, as far as tests look at it. */
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

/** One process of `claude -p` that gets one prompt after the other, each when the one before is done. Throws if one fails. */
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
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  for (const content of prompts) {
    child.stdin.write(`${JSON.stringify({ type: 'user', message: { role: 'user', content } })}\n`);
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error('Claude ended before it answered');
      const line = JSON.parse(value) as ClaudeLine;
      if (line.type !== 'result') continue;
      if (line.is_error) throw new Error(`Claude failed: ${line.result}`);
      break;
    }
  }
  child.stdin.end();
  await new Promise((resolve) => child.once('close', resolve));
}

async function text(stream: Readable): Promise<string> {
  return Buffer.concat(await stream.toArray()).toString();
}
