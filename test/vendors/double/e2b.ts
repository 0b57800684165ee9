// A test double of the public methods of e2b that we use, with real processes and files (service.ts). The key is the folder of its
// machines. test/vendors/published.ts checks that it has the published types of the package.
import { randomUUID } from 'node:crypto';
import { type MachineFacts, Service } from './service.ts';

const HOME = '/home/user';
const DEFAULT_MS = 300_000;
/** In real machines any port can be reached; in these, only that of the bridge. */
const PORT = 43_117;

export class NotFoundError extends Error {}

interface Account {
  readonly apiKey?: string;
}

interface NewMachine extends Account {
  readonly metadata?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

interface Listed extends Account {
  readonly query?: { readonly metadata?: Readonly<Record<string, string>> };
}

export class Sandbox {
  readonly #service: Service;
  readonly sandboxId: string;

  static async create(options: NewMachine = {}): Promise<Sandbox> {
    const service = new Service(options.apiKey ?? '');
    const id = randomUUID();
    service.make({ id, home: HOME, port: PORT, metadata: options.metadata ?? {} });
    await service.wake(id, options.timeoutMs ?? DEFAULT_MS);
    return new Sandbox(service, id);
  }

  static async connect(id: string, options: Account & { timeoutMs?: number } = {}): Promise<Sandbox> {
    const service = new Service(options.apiKey ?? '');
    if (service.facts(id) === null) throw new NotFoundError(`Sandbox ${id} not found`);
    await service.wake(id, options.timeoutMs ?? DEFAULT_MS);
    return new Sandbox(service, id);
  }

  static async kill(id: string, options: Account = {}): Promise<boolean> {
    const service = new Service(options.apiKey ?? '');
    const isThere = service.facts(id) !== null;
    await service.remove(id);
    return isThere;
  }

  static list(options: Listed = {}) {
    return new Pages(options);
  }

  private constructor(service: Service, id: string) {
    this.#service = service;
    this.sandboxId = id;
  }

  getHost(_port: number): string {
    return `localhost:${this.#service.state(this.sandboxId)?.forwardedPort ?? 1}`;
  }

  async setTimeout(ms: number): Promise<void> {
    await this.#ask({ op: 'awake', ms });
  }

  async kill(): Promise<boolean> {
    return Sandbox.kill(this.sandboxId, { apiKey: this.#service.root });
  }

  async pause(_options?: { readonly keepMemory?: boolean }): Promise<boolean> {
    await this.#service.stop(this.sandboxId);
    return true;
  }

  #ask(request: Parameters<Service['ask']>[1]): Promise<unknown> {
    if (this.#service.state(this.sandboxId) === null) throw new NotFoundError('The sandbox is not running');
    return this.#service.ask(this.sandboxId, request);
  }

  readonly files = {
    read: async (path: string, _options: { format: 'bytes' }): Promise<Uint8Array> => {
      const read = (await this.#ask({ op: 'read', path })) as string | null;
      if (read === null) throw new NotFoundError(`${path} not found`);
      return Buffer.from(read, 'base64');
    },
    writeFiles: async (files: { path: string; data: ArrayBuffer }[]) => {
      for (const { path, data } of files) {
        const content = Buffer.from(data).toString('base64');
        await this.#ask({ op: 'write', path, content, mode: 0o644, makeFolder: true });
      }
      return [];
    },
  };

  readonly commands = {
    run: async (command: string, options: { background: true; envs?: Record<string, string>; timeoutMs?: number }) => {
      const { envs: env = {} } = options;
      await this.#ask({ op: 'run', command: ['/bin/sh', '-c', command], env, detached: true });
      return { disconnect: async () => {} };
    },
  };
}

class Pages {
  readonly #options: Listed;
  hasNext = true;

  constructor(options: Listed) {
    this.#options = options;
  }

  async nextItems() {
    this.hasNext = false;
    const service = new Service(this.#options.apiKey ?? '');
    const wanted = Object.entries(this.#options.query?.metadata ?? {});
    const matches = ({ metadata }: MachineFacts) => wanted.every(([name, value]) => metadata[name] === value);
    return service
      .all()
      .filter(matches)
      .map(({ id, metadata, startedAt }) => ({
        sandboxId: id,
        metadata,
        startedAt: new Date(startedAt),
        endAt: new Date(startedAt + DEFAULT_MS),
        state: service.state(id) === null ? ('paused' as const) : ('running' as const),
      }));
  }
}
