import { randomUUID } from 'node:crypto';
import type { Child, OpenSandbox, Sandboxes } from '../../../src/ports/sandbox.ts';

export interface GivenSandboxes {
  /** A new object for the sandboxes of one place, as another process of ours would have it. */
  sandboxes(): Sandboxes;
  /** A command that opens the sandbox "one" in a process of ours, starts `words` there, prints its identity as JSON, and waits. */
  starter(words: readonly string[]): readonly [string, ...string[]];
  /** Each sandbox has its own home directory. */
  readonly ownHomes?: boolean;
  /** Agents see nothing else of the machine. */
  readonly isolated?: boolean;
  /** A start takes long, so the commands of a test run in one shell. */
  readonly slowStarts?: boolean;
  /** How often a race is tried. Left out: 300 times. Fewer where every step takes long. */
  readonly rounds?: number;
  /** Removes all sandboxes. */
  dispose(): Promise<void>;
}

/** What the parts of the contract work with. */
export interface Around {
  readonly given: GivenSandboxes;
  readonly sandboxes: Sandboxes;
  readonly sandbox: OpenSandbox;
  /** Runs a command of an agent to its end. Returns its output. Throws when it fails. */
  run(script: string): Promise<string>;
  start(script: string, options?: { readonly partOf?: Child['identity'] }): Promise<Child>;
}

/** `started`: gets everything that must be ended after a test. */
export async function aroundOf(given: GivenSandboxes, started: Child[]): Promise<Around> {
  const sandboxes = given.sandboxes();
  const sandbox = await sandboxes.open('one', { cwd: null });
  const start: Around['start'] = async (script, options = {}) => {
    const child = await sandbox.spawn(['/bin/sh', '-c', script], { env: {}, ...options });
    started.push(child);
    return child;
  };
  const run: Around['run'] = async (script) => {
    const child = await start(script);
    child.stdin.end();
    const [exit, out, error] = await Promise.all([child.exited, textOf(child.stdout), textOf(child.stderr)]);
    if (exit.code !== 0) throw new Error(`${script} failed: ${error}`);
    return out;
  };
  return { given, sandboxes, sandbox, start, run: given.slowStarts ? inOneShell(start) : run };
}

/** The same as `run`, but one command after the other in one shell. */
function inOneShell(start: Around['start']): Around['run'] {
  let shell: Promise<(script: string) => Promise<string>> | null = null;
  let last: Promise<unknown> = Promise.resolve();
  return (script) => {
    shell ??= start('exec /bin/sh').then(scripted);
    const waiting = shell;
    const result = last.then(async () => (await waiting)(script));
    last = result.catch(() => {});
    return result;
  };
}

function scripted(shell: Child): (script: string) => Promise<string> {
  const end = `end of ${randomUUID()}`;
  const output = shell.stdout[Symbol.asyncIterator]();
  return async (script) => {
    shell.stdin.write(`(${script}\n) </dev/null 2>&1; printf '\\n${end} %s\\n' $?\n`);
    let said = '';
    for (;;) {
      const [, out = '', code] = new RegExp(`^([^]*)\n${end} (\\d+)\n$`).exec(said) ?? [];
      if (code === '0') return out;
      if (code !== undefined) throw new Error(`${script} failed: ${out}`);
      const { value, done } = await output.next();
      if (done) throw new Error(`${script} ended its shell: ${said}`);
      said += Buffer.from(value).toString();
    }
  };
}

export async function textOf(output: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of output) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
