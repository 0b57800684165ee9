import { type Machine, saidBy, type Vendor, type VendorOptions } from './vendor.ts';

/* E2B, by the package e2b. Written against its published types; not tried against the real service. */

/** What we use of the package. test/vendors checks that its published types fit. */
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

/** Of the user that a template has if it names no other. */
const FOLDER = '/home/user/.throughline';

/** Machines have no names here: they are found by what we have noted of them. */
const noted = (prefix: string, name?: string) => ({ throughline: prefix, ...(name !== undefined && { name }) });

const said = <T>(asked: Promise<T>) => saidBy('E2B', asked);

export function e2bVendor(sdk: E2bSdk, { prefix, image, awakeMs }: VendorOptions, apiKey: string | null): Vendor {
  const account: Account = apiKey === null ? {} : { apiKey };

  async function listed(name?: string): Promise<Info[]> {
    const found: Info[] = [];
    const pages = sdk.Sandbox.list({ ...account, query: { metadata: noted(prefix, name) } });
    while (pages.hasNext) found.push(...(await said(pages.nextItems())));
    // Of several that were made at once, everybody takes the first.
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
      if (first.state === 'running') return awake(name, await said(connected(first.sandboxId)));
      return restingMachine(name, async () => void (await said(sdk.Sandbox.kill(first.sandboxId, account))));
    },
    async wake(name) {
      const [first] = await listed(name);
      const found = first && (await said(unlessMissing(sdk, connected(first.sandboxId))));
      if (found) return awake(name, found);
      const made = await said(
        sdk.Sandbox.create({
          ...account,
          ...(image !== null && { template: image }),
          metadata: noted(prefix, name),
          timeoutMs: awakeMs,
          lifecycle: { onTimeout: { action: 'pause', keepMemory: false } },
        }),
      );
      const [winner] = await listed(name);
      if (winner === undefined || winner.sandboxId === made.sandboxId) return awake(name, made);
      await said(made.kill());
      return awake(name, await said(connected(winner.sandboxId)));
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
    read: (file) => said(unlessMissing(sdk, sandbox.files.read(`${FOLDER}/${file}`, { format: 'bytes' }))),
    async write(files) {
      const entries = files.map(({ name, content }) => ({
        path: `${FOLDER}/${name}`,
        data: Uint8Array.from(content).buffer,
      }));
      await said(sandbox.files.writeFiles(entries));
    },
    async start(command, envs) {
      const words = command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
      const options = { background: true as const, envs: { ...envs }, timeoutMs: 0 };
      await (await said(sandbox.commands.run(words, options))).disconnect();
    },
    extend: (ms) => said(sandbox.setTimeout(ms)),
    rest: async () => void (await said(sandbox.pause({ keepMemory: false }))),
    remove: async () => void (await said(sandbox.kill())),
  };
}

/** On this machine (what the package calls debugging) there is no TLS. */
function addressOf(host: string): string {
  return `${host.startsWith('localhost:') ? 'http' : 'https'}://${host}`;
}

/** What rests has no programs and no address. */
function restingMachine(name: string, remove: () => Promise<void>): Machine {
  const resting = async () => {
    throw new Error(`the machine ${name} rests`);
  };
  return {
    ...{ name, isAwake: false, folder: FOLDER, awakeForMs: null, address: () => '' },
    ...{ read: resting, write: resting, start: resting, extend: resting, rest: async () => {}, remove },
  };
}

async function unlessMissing<T>(sdk: E2bSdk, asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof sdk.NotFoundError) return null;
    throw error;
  }
}
