// A pgbouncer in transaction mode in front of a PostgreSQL: each transaction of a client may use another connection to the server.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NOBODY, type PostgresServer, UNTIL_WE_END } from './server.ts';

const PROGRAM = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find((path) => existsSync(path));

/** Why tests cannot use it here; null: they can. */
export const NO_POOLER = PROGRAM === undefined ? 'pgbouncer is not installed' : null;

const PORT = '6432';
/** The pooler maps the first database name to the second one. */
export const [SWAPPED, SWAPPED_FOR] = ['swapped', 'swapped_for'];

/** The pool has fewer connections than the clients, so that they share them. */
const settings = (server: string, folder: string) => `
[databases]
${SWAPPED} = host=${server} dbname=${SWAPPED_FOR} user=throughline
* = host=${server} user=throughline
[pgbouncer]
listen_addr =
listen_port = ${PORT}
unix_socket_dir = ${folder}
auth_type = any
pool_mode = transaction
default_pool_size = 3
`;

export class Pooler implements AsyncDisposable {
  readonly #folder: string;
  readonly #end: () => Promise<void>;

  static async of(server: PostgresServer): Promise<Pooler> {
    const folder = mkdtempSync(join(server.folder, 'pooler-'));
    const file = join(folder, 'pgbouncer.ini');
    writeFileSync(file, settings(join(server.folder, 'socket'), folder));
    const { uid, gid } = NOBODY;
    if (uid !== undefined && gid !== undefined) for (const path of [folder, file]) chownSync(path, uid, gid);
    const child = spawn('sh', ['-c', UNTIL_WE_END, 'sh', PROGRAM ?? '', '-q', file], {
      ...NOBODY,
      cwd: folder,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    const ended = once(child, 'exit');
    while (!existsSync(join(folder, `.s.PGSQL.${PORT}`))) {
      if (child.exitCode !== null) throw new Error('pgbouncer does not start.');
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return new Pooler(folder, async () => {
      child.stdin?.end();
      await ended;
    });
  }

  private constructor(folder: string, end: () => Promise<void>) {
    this.#folder = folder;
    this.#end = end;
  }

  url(database: string): string {
    return `postgres://throughline@localhost:${PORT}/${database}?host=${encodeURIComponent(this.#folder)}`;
  }

  /** The same, and also the address of PostgreSQL itself for LISTEN, which a pooler in this mode does not support. */
  urlWithListen(database: string, server: PostgresServer): string {
    return `${this.url(database)}&listen=${encodeURIComponent(join(server.folder, 'socket'))}`;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#end();
  }
}
