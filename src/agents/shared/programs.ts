import { addAbortListener } from 'node:events';
import { delimiter, isAbsolute, join } from 'node:path';
import { given } from '../../core/input/arguments.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';

/** Agents read settings from the folder that they are started in, and above it. Only the administrator can write here. */
const NEUTRAL_FOLDER = '/';

/** A program by its absolute path, or by a name to look for on PATH, or on `path`. Null: the sandbox has none, or it is not executable. */
export async function programOn(sandbox: OpenSandbox, name: string, path: string | undefined): Promise<string | null> {
  if (/[/\\]/.test(name) || path === undefined) return sandbox.find(name);
  // Relative entries mean another folder in every working directory.
  for (const folder of path.split(delimiter).filter(isAbsolute)) {
    const program = await sandbox.find(join(folder, name));
    if (program !== null) return program;
  }
  return null;
}

/** More than any answer has. */
const MOST_OUTPUT = 64 * 1024 * 1024;

/** Asks a program about itself, without a shell. Never rejects; a program that fails may have printed an answer. */
export async function askProgram(
  sandbox: OpenSandbox,
  command: readonly string[],
  { env, signal }: { readonly env: Readonly<Record<string, string>>; readonly signal: AbortSignal },
): Promise<{ readonly failed: boolean; readonly output: string }> {
  try {
    const child = await sandbox.spawn(command, { cwd: NEUTRAL_FOLDER, env });
    const stop = () => child.kill('SIGKILL');
    using _ = addAbortListener(signal, stop);
    child.stdin.end(); // a program that reads its input would wait for ever
    const [output] = await Promise.all([gather(child.stdout, stop), gather(child.stderr, stop)]);
    return { failed: (await child.exited).code !== 0, output };
  } catch {
    return { failed: true, output: '' };
  }
}

async function gather(output: AsyncIterable<Uint8Array>, tooMuch: () => void): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of output) {
    length += chunk.length;
    if (length > MOST_OUTPUT) tooMuch();
    else chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Variables that any agent needs to reach its model. */
const NETWORK = [/^(?:HTTPS?|NO|ALL)_PROXY$/i, /^(?:NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR))$/];

/** The variables of our environment that an agent inherits, in addition to those that every program gets. */
export function inheritedVariables(names: readonly RegExp[], ours: NodeJS.ProcessEnv): Record<string, string> {
  const taken = Object.entries(ours).filter(([name]) => [...NETWORK, ...names].some((one) => one.test(name)));
  return given(Object.fromEntries(taken)) as Record<string, string>;
}
