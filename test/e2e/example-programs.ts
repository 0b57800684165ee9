// Runs the examples as programs: real processes, real requests, real kills.
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { until } from '../faults/harness/until.ts';

/** test/package/packed.test.ts runs tests with the examples of the packed package. */
export const EXAMPLES = process.env.THROUGHLINE_EXAMPLES ?? fileURLToPath(new URL('../../examples/', import.meta.url));

const running = new Set<Program>();

/** Variables with which an example kills itself as soon as it has written this text. A kill from outside could come too late. */
export function killWhenWritten(name: string, text: string): NodeJS.ProcessEnv {
  const kill = `if (process.argv[1]?.endsWith(${JSON.stringify(name)})) {
    const { write } = process.stdout;
    process.stdout.write = (...args) => {
      const result = write.apply(process.stdout, args);
      if (String(args[0]).includes(${JSON.stringify(text)})) process.kill(process.pid, 'SIGKILL');
      return result;
    };
  }`;
  return { ...process.env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(kill)}` };
}

/** Kills the programs that still run. */
export async function endPrograms(): Promise<void> {
  await Promise.all([...running].map((program) => program.kill()));
}

export class Program {
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  readonly ended: Promise<number | null>;
  output = '';
  /** The process has ended, and all its output was read. */
  #hasEnded = false;

  constructor(name: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
    this.#child = spawn(process.execPath, [join(EXAMPLES, name), ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.on('data', (bytes) => {
        this.output += bytes;
      });
    }
    this.ended = new Promise((resolve) => this.#child.once('close', resolve));
    running.add(this);
    void this.ended.then(() => {
      this.#hasEnded = true;
      running.delete(this);
    });
  }

  get lines(): string[] {
    return this.output.trim().split('\n');
  }

  /** Waits until the output matches, and returns the match. */
  async until(pattern: RegExp): Promise<string> {
    const found = await until(`${pattern}`, () => {
      if (this.#hasEnded && !pattern.test(this.output)) throw new Error(`ended early: ${this.output}`);
      return pattern.exec(this.output);
    });
    return found[0];
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    expect(await this.ended, this.output).toBe(0);
  }
}

const CHAT = '/chats/support';

/** Starts examples/login.ts. Returns the program, and the requests that its users can make. */
export async function startLoginApp(env: NodeJS.ProcessEnv) {
  const program = new Program('login.ts', [], { ...env, COOKIE_SECRET: 'the same for all processes' });
  const url = await program.until(/http:\/\/127\.0\.0\.1:\d+/);
  const login = async (name: string, password?: string) => {
    const body = new URLSearchParams({ name, ...(password !== undefined && { password }) });
    const { status, headers } = await fetch(`${url}/login`, { method: 'POST', body, redirect: 'manual' });
    return { status, cookie: headers.get('set-cookie')?.split(';')[0] ?? '' };
  };
  const say = (cookie: string, text: string, id: string) =>
    fetch(`${url}${CHAT}`, { method: 'POST', body: text, headers: { cookie, 'idempotency-key': id } });
  const read = async (cookie: string, path = '') =>
    (await fetch(`${url}${CHAT}${path}`, { headers: { cookie } })).json() as Promise<unknown>;
  const replies = async (cookie: string) =>
    ((await read(cookie)) as { state: string; reply: string }[]).map((turn) =>
      turn.state === 'completed' ? turn.reply : null,
    );
  /** The raw stream of server-sent events from the first event, until this many turns have ended. */
  const events = async (cookie: string, ends: number) => {
    const abort = new AbortController();
    const { body } = await fetch(`${url}${CHAT}/events`, { headers: { cookie }, signal: abort.signal });
    let text = '';
    for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      if (text.slice(0, text.lastIndexOf('\n\n')).split('"kind":"turn.ended"').length > ends) break;
    }
    abort.abort();
    return text;
  };
  /** Waits until the n-th prompt is answered, and returns the reply. */
  const answerOf = async (cookie: string, n: number) => {
    await events(cookie, n);
    return (await replies(cookie))[n - 1] ?? expect.unreachable(`prompt ${n} has no answer`);
  };
  return { program, url, login, say, read, replies, answerOf, events };
}
