import { dirname } from 'node:path/posix';
import { type Machine, type Vendor, type VendorOptions, vendorCall } from './vendor.ts';

/* Vercel Sandbox, by @vercel/sandbox. Written against its published types; not tried against the real service. */

/** The part of the package that we use. test/vendors compares it with the published types. */
export interface VercelSdk {
  readonly Sandbox: {
    readonly get: (params: Named | (Named & VercelCredentials)) => Promise<VercelSandbox>;
    readonly getOrCreate: (params: NewMachine | (NewMachine & VercelCredentials)) => Promise<VercelSandbox>;
    readonly list: (params: Listed | (Listed & VercelCredentials)) => Promise<AsyncIterable<{ readonly name: string }>>;
  };
}

export type VercelCredentials = { readonly token: string; readonly teamId: string; readonly projectId: string };

// Types and not interfaces: the package also takes names that begin with "__", and an interface does not fit that.
type Named = { name: string; resume?: boolean };
type Listed = { namePrefix: string; sortBy: 'name' };
type NewMachine = Named & { image?: string; ports: number[]; timeout: number; persistent: true };

export interface VercelSandbox {
  readonly name: string;
  readonly status: string;
  readonly cwd: string;
  readonly expiresAt: Date | undefined;
  readonly domain: (port: number) => string;
  readonly readFileToBuffer: (file: { path: string }) => Promise<Uint8Array | null>;
  readonly writeFiles: (files: { path: string; content: Uint8Array; mode?: number }[]) => Promise<void>;
  readonly runCommand: (params: Command) => Promise<{ readonly exitCode: number | null }>;
  readonly extendTimeout: (ms: number) => Promise<void>;
  readonly stop: () => Promise<unknown>;
  readonly delete: (options: { deleteOrphanSnapshots: boolean }) => Promise<void>;
}

interface Command {
  cmd: string;
  args: string[];
  env: Record<string, string>;
  detached: boolean;
}

const asked = <T>(call: Promise<T>) => vendorCall('Vercel', call);

export function vercelVendor(
  sdk: VercelSdk,
  { prefix, image, port, awakeMs }: VendorOptions,
  credentials: VercelCredentials | null,
): Vendor {
  const account = credentials ?? {};
  return {
    kind: 'vercel',
    async find(name) {
      const found = await asked(unlessMissing(sdk.Sandbox.get({ name, resume: false, ...account })));
      return found && machineOf(found);
    },
    async wake(name) {
      const made = { ports: [port], timeout: awakeMs, persistent: true as const, ...(image !== null && { image }) };
      return machineOf(await asked(sdk.Sandbox.getOrCreate({ name, resume: true, ...made, ...account })));
    },
    async names() {
      const listed = await asked(sdk.Sandbox.list({ namePrefix: prefix, sortBy: 'name', ...account }));
      return asked(Array.fromAsync(listed, ({ name }) => name));
    },
  };
}

const AWAKE = ['pending', 'running'];

function machineOf(sandbox: VercelSandbox): Machine {
  let until = sandbox.expiresAt?.getTime() ?? null;
  const folder = `${sandbox.cwd}/.throughline`;
  const run = (cmd: string, args: string[], env: Record<string, string>, detached: boolean) =>
    asked(sandbox.runCommand({ cmd, args, env, detached }));
  return {
    name: sandbox.name,
    isAwake: AWAKE.includes(sandbox.status),
    folder,
    awakeForMs: until === null ? null : until - Date.now(),
    address: (port) => sandbox.domain(port),
    read: (name) => asked(sandbox.readFileToBuffer({ path: `${folder}/${name}` })),
    async write(files) {
      const folders = new Set(files.map(({ name }) => dirname(`${folder}/${name}`)));
      await run('mkdir', ['-p', ...folders], {}, false);
      await asked(sandbox.writeFiles(files.map(({ name, content }) => ({ path: `${folder}/${name}`, content }))));
    },
    async start([program = '', ...args], env) {
      await run(program, args, { ...env }, true);
    },
    async extend(ms) {
      // The vendor adds to the time that is left.
      const left = until === null ? 0 : until - Date.now();
      if (left >= ms) return;
      await asked(sandbox.extendTimeout(ms - left));
      until = Date.now() + ms;
    },
    rest: async () => void (await asked(sandbox.stop())),
    remove: () => asked(sandbox.delete({ deleteOrphanSnapshots: true })),
  };
}

/** Null: the service says that there is none. */
async function unlessMissing<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    const { response } = error as { response?: { status?: number } };
    if (response?.status === 404 || response?.status === 410) return null;
    throw error;
  }
}
