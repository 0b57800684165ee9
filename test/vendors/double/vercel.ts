// A test double of the public methods of @vercel/sandbox that we use, with real processes and files (service.ts). The token is the folder
// of its machines. test/vendors/published.ts checks that it has the published types of the package.
import { Service } from './service.ts';

interface Options {
  readonly name?: string;
  readonly token?: string;
  readonly ports?: number[];
  readonly timeout?: number;
}

const HOME = '/vercel/sandbox';
const DEFAULT_MS = 300_000;

/** As the package throws it. */
class APIError extends Error {
  readonly response: { readonly status: number };
  constructor(status: number, message: string) {
    super(message);
    this.response = { status };
  }
}

function serviceOf({ token = '' }: Options): Service {
  try {
    return new Service(token);
  } catch (error) {
    throw new APIError(401, String(error));
  }
}

export class Sandbox {
  readonly #service: Service;
  readonly #timeout: number;
  readonly name: string;
  status: 'running' | 'stopped';
  expiresAt: Date | undefined;

  static async get(params: Options & { readonly name: string }): Promise<Sandbox> {
    const service = serviceOf(params);
    if (service.facts(params.name) === null) throw new APIError(404, 'Not Found');
    return new Sandbox(service, params.name, DEFAULT_MS);
  }

  static async getOrCreate(params: Options): Promise<Sandbox> {
    const { name = '', ports: [port = 0] = [], timeout = DEFAULT_MS } = params;
    const service = serviceOf(params);
    service.make({ id: name, home: HOME, port, metadata: {} });
    await service.wake(name, timeout);
    return new Sandbox(service, name, timeout);
  }

  static async list(params: Options & { readonly namePrefix?: string } = {}) {
    const { namePrefix = '' } = params;
    const found = serviceOf(params).all();
    const named = found.map(({ id }) => ({ name: id })).filter(({ name }) => name.startsWith(namePrefix));
    return (async function* () {
      yield* named;
    })();
  }

  private constructor(service: Service, name: string, timeout: number) {
    this.#service = service;
    this.#timeout = timeout;
    this.name = name;
    this.status = service.state(name) === null ? 'stopped' : 'running';
    this.expiresAt = this.status === 'running' ? new Date(Date.now() + timeout) : undefined;
  }

  get cwd(): string {
    return HOME;
  }

  domain(_port: number): string {
    // For a resting machine, an address where nothing listens.
    return `http://127.0.0.1:${this.#service.state(this.name)?.forwardedPort ?? 1}`;
  }

  /** Every request wakes a resting machine. */
  async #ask(request: Parameters<Service['ask']>[1]): Promise<unknown> {
    if (this.#service.facts(this.name) === null) throw new APIError(404, 'Not Found');
    await this.#service.wake(this.name, this.#timeout);
    return this.#service.ask(this.name, request);
  }

  async readFileToBuffer(file: { path: string }): Promise<Buffer | null> {
    const read = (await this.#ask({ op: 'read', path: file.path })) as string | null;
    return read === null ? null : Buffer.from(read, 'base64');
  }

  async writeFiles(files: { path: string; content: string | Uint8Array; mode?: number }[]): Promise<void> {
    for (const { path, content, mode = 0o644 } of files) {
      await this.#ask({ op: 'write', path, content: Buffer.from(content).toString('base64'), mode, makeFolder: false });
    }
  }

  async runCommand(params: { cmd: string; args?: string[]; env?: Record<string, string>; detached?: boolean }) {
    const { cmd, args = [], env = {}, detached = false } = params;
    return { exitCode: (await this.#ask({ op: 'run', command: [cmd, ...args], env, detached })) as number | null };
  }

  async extendTimeout(duration: number): Promise<void> {
    const left = (this.expiresAt?.getTime() ?? Date.now()) - Date.now();
    await this.#ask({ op: 'awake', ms: left + duration });
    this.expiresAt = new Date(Date.now() + left + duration);
  }

  async stop(): Promise<void> {
    await this.#service.stop(this.name);
  }

  async delete(_options?: { deleteOrphanSnapshots?: boolean }): Promise<void> {
    await this.#service.remove(this.name);
  }
}
