import { words } from '../shared/remote/machine.ts';
import { type Machine, type Vendor, type VendorOptions, vendorCall } from './vendor.ts';

/* E2B, by the package e2b. Written against its published types; not tried against the real service. */

/** The part of the package that we use. test/vendors compares it with the published types. */
export interface E2bSdk {
  readonly Sandbox: {
    readonly create: (options: NewMachine) => Promise<E2bSandbox>;
    readonly connect: (id: string, options: Account & { timeoutMs: number }) => Promise<E2bSandbox>;
    readonly kill: (id: string, options: Account) => Promise<boolean>;
    readonly list: (options: Account & { query: { metadata: Record<string, string> } }) => Pages;
  };
  readonly NotFoundError: abstract new (...args: never[]) => Error;
}

interface Account {
  apiKey?: string;
}

interface NewMachine extends Account {
  template?: string;
  metadata: Record<string, string>;
  timeoutMs: number;
  lifecycle: { onTimeout: { action: 'pause'; keepMemory: false } };
}

interface Pages {
  readonly hasNext: boolean;
  readonly nextItems: () => Promise<Info[]>;
}

interface Info {
  readonly sandboxId: string;
  readonly metadata: Record<string, string>;
  readonly startedAt: Date;
  readonly endAt: Date;
  readonly state: 'running' | 'paused';
}

export interface E2bSandbox {
  readonly sandboxId: string;
  readonly getHost: (port: number) => string;
  readonly setTimeout: (ms: number) => Promise<void>;
  readonly pause: (options: { keepMemory: false }) => Promise<boolean>;
  readonly kill: () => Promise<boolean>;
  readonly files: {
    readonly read: (path: string, options: { format: 'bytes' }) => Promise<Uint8Array>;
    readonly writeFiles: (files: { path: string; data: ArrayBuffer }[]) => Promise<unknown>;
  };
  readonly commands: {
    readonly run: (
      command: string,
      options: { background: true; envs: Record<string, string>; timeoutMs: number },
    ) => Promise<{ readonly disconnect: () => Promise<void> }>;
  };
}

/** In the home of the default user of a template. */
const FOLDER = '/home/user/.throughline';

/** Machines have no names here: we find them by their metadata. */
const metadataOf = (prefix: string, name?: string) => ({ throughline: prefix, ...(name !== undefined && { name }) });

const asked = <T>(call: Promise<T>) => vendorCall('E2B', call);

export function e2bVendor(sdk: E2bSdk, { prefix, image, awakeMs }: VendorOptions, apiKey: string | null): Vendor {
  const account: Account = apiKey === null ? {} : { apiKey };

  async function listed(name?: string): Promise<Info[]> {
    const found: Info[] = [];
    const pages = sdk.Sandbox.list({ ...account, query: { metadata: metadataOf(prefix, name) } });
    while (pages.hasNext) found.push(...(await asked(pages.nextItems())));
    // If several were created at once, every process uses the first.
    return found.toSorted(
      (a, b) => a.startedAt.getTime() - b.startedAt.getTime() || (a.sandboxId < b.sandboxId ? -1 : 1),
    );
  }
  const connected = (id: string) => sdk.Sandbox.connect(id, { ...account, timeoutMs: awakeMs });
  const awake = (name: string, sandbox: E2bSandbox) => machineOf(name, sandbox, sdk, awakeMs);

  return {
    kind: 'e2b',
    async find(name) {
      const [first] = await listed(name);
      if (first === undefined) return null;
      if (first.state === 'running') return awake(name, await asked(connected(first.sandboxId)));
      return restingMachine(name, async () => void (await asked(sdk.Sandbox.kill(first.sandboxId, account))));
    },
    async wake(name) {
      const [first] = await listed(name);
      const found = first && (await asked(unlessMissing(sdk, connected(first.sandboxId))));
      if (found) return awake(name, found);
      const made = await asked(
        sdk.Sandbox.create({
          ...account,
          ...(image !== null && { template: image }),
          metadata: metadataOf(prefix, name),
          timeoutMs: awakeMs,
          lifecycle: { onTimeout: { action: 'pause', keepMemory: false } },
        }),
      );
      const [winner] = await listed(name);
      if (winner === undefined || winner.sandboxId === made.sandboxId) return awake(name, made);
      await asked(made.kill());
      return awake(name, await asked(connected(winner.sandboxId)));
    },
    names: async () => (await listed()).flatMap(({ metadata }) => metadata.name ?? []),
  };
}

function machineOf(name: string, sandbox: E2bSandbox, sdk: E2bSdk, awakeMs: number): Machine {
  return {
    name,
    isAwake: true,
    folder: FOLDER,
    awakeForMs: awakeMs,
    address: (port) => addressOf(sandbox.getHost(port)),
    read: (file) => asked(unlessMissing(sdk, sandbox.files.read(`${FOLDER}/${file}`, { format: 'bytes' }))),
    async write(files) {
      const entries = files.map(({ name, content }) => ({
        path: `${FOLDER}/${name}`,
        data: Uint8Array.from(content).buffer,
      }));
      await asked(sandbox.files.writeFiles(entries));
    },
    async start(command, envs) {
      const options = { background: true as const, envs: { ...envs }, timeoutMs: 0 };
      await (await asked(sandbox.commands.run(words(command), options))).disconnect();
    },
    extend: (ms) => asked(sandbox.setTimeout(ms)),
    rest: async () => void (await asked(sandbox.pause({ keepMemory: false }))),
    remove: async () => void (await asked(sandbox.kill())),
  };
}

/** A service on this machine (the package calls this debugging) has no TLS. */
function addressOf(host: string): string {
  return `${host.startsWith('localhost:') ? 'http' : 'https'}://${host}`;
}

/** A resting machine has no programs and no address. */
function restingMachine(name: string, remove: () => Promise<void>): Machine {
  const resting = async () => {
    throw new Error(`the machine ${name} rests`);
  };
  return {
    ...{ name, isAwake: false, folder: FOLDER, awakeForMs: null, address: () => '' },
    ...{ read: resting, write: resting, start: resting, extend: resting, rest: async () => {}, remove },
  };
}

async function unlessMissing<T>(sdk: E2bSdk, call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof sdk.NotFoundError) return null;
    throw error;
  }
}
