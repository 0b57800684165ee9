// Several servers on one PostgreSQL, each with its own data home, and with directories that all of them reach.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AGENTS } from '../e2e/cli/agents.ts';
import { CliHome, MANY_SLOTS, type StartOptions } from '../e2e/cli/process.ts';
import { type ServedProcess, serveProcess } from '../e2e/http/support/served-process.ts';

export class Servers implements AsyncDisposable {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-servers-')));
  readonly #store: string;
  readonly #homes: CliHome[] = [];

  /** `store`: the address of the database. */
  constructor(store: string) {
    this.#store = store;
  }

  /** A data home that uses the store. It has the same place as the others, unless it is `alone`. */
  newHome({ alone = false, moveHere = false, turns = MANY_SLOTS } = {}): CliHome {
    const home = new CliHome();
    this.#homes.push(home);
    const place = alone
      ? { sandbox: { moveHere } }
      : { sandbox: { place: 'team', root: join(this.folder, 'sandboxes') } };
    const common = { store: this.#store, defaultAgent: 'scripted', agents: AGENTS, turns };
    home.configure({ ...common, ...place });
    return home;
  }

  /** All servers have the same token, as is usual for several servers behind one address. */
  serve(home: CliHome, options: StartOptions = {}): Promise<ServedProcess> {
    const folder = join(home.path, 'home', 'server');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, 'token'), `${'t'.repeat(43)}\n`, { mode: 0o600 });
    return serveProcess(home, '--log-level', 'warn', options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#homes.map((home) => home.remove()));
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20 });
  }
}
