// A rented machine, for tests. It runs inside of bubblewrap, and everything else there ends with it. It runs commands, reads and writes
// files, forwards connections to a port, and ends itself when its time is over, as the machines of a vendor do.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createPlainServer } from 'node:net';
import { dirname } from 'node:path';

export interface MachineStart {
  readonly name: string;
  readonly cwd: string;
  readonly awakeMs: number;
}

/** A request to a machine. */
export type MachineRequest =
  | { readonly op: 'run'; readonly command: readonly string[]; readonly env: object; readonly detached: boolean }
  | { readonly op: 'read'; readonly path: string }
  | {
      readonly op: 'write';
      readonly path: string;
      readonly content: string;
      readonly mode: number;
      readonly makeFolder: boolean;
    }
  | { readonly op: 'awake'; readonly ms: number };

const { name, cwd, awakeMs } = JSON.parse(process.argv[2] ?? '') as MachineStart;
/** Each machine has its own ports: instead of a port, a program listens on an abstract socket with a name that only this machine has. */
const portName = (port: number | string) => `\0${name}:${port}`;
const PRELOAD = '/run/double/ports.cjs';

let until = Date.now() + awakeMs;
setInterval(() => {
  if (Date.now() > until) process.exit(0);
}, 20);

async function answer(request: MachineRequest): Promise<unknown> {
  if (request.op === 'run') return run(request);
  if (request.op === 'awake') {
    until = Date.now() + request.ms;
    return until;
  }
  if (request.op === 'write') {
    if (request.makeFolder) mkdirSync(dirname(request.path), { recursive: true });
    writeFileSync(request.path, Buffer.from(request.content, 'base64'), { mode: request.mode });
    return null;
  }
  try {
    return readFileSync(request.path).toString('base64');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

async function run({ command: [program = '', ...args], env, detached }: MachineRequest & { op: 'run' }) {
  const child: ChildProcess = spawn(program, args, {
    cwd,
    env: { ...process.env, ...env, NODE_OPTIONS: `--require ${PRELOAD}`, DOUBLE_PORTS: name },
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true,
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    if (detached) child.once('spawn', () => resolve(null));
    else child.once('exit', (code) => resolve(code));
  });
}

const control = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    response.end(JSON.stringify({ value: await answer(JSON.parse(Buffer.concat(chunks).toString())) }));
  } catch (error) {
    response.end(JSON.stringify({ error: String(error) }));
  }
});

/** Forwards connections from outside to the one port that is published. */
const portForwarder = createPlainServer((outside) => {
  const inside = connect(portName(readFileSync('/run/double/port', 'utf8')));
  for (const [from, to] of [
    [outside, inside],
    [inside, outside],
  ] as const) {
    from.on('error', () => to.destroy());
    from.on('close', () => to.destroy());
    from.pipe(to);
  }
});

const listen = (server: typeof control | typeof portForwarder) =>
  new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
const state = { control: await listen(control), forwardedPort: await listen(portForwarder), until };
writeFileSync('/run/double/state.new', JSON.stringify(state));
renameSync('/run/double/state.new', '/run/double/state.json');
