// A real PostgreSQL that accepts TCP connections only with TLS, at its own address of the loopback.
import { execFileSync, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ThroughlineError } from '../../src/core/errors.ts';
import { openPostgresStore } from '../../src/stores/postgres/store.ts';
import { NO_POSTGRES, NOBODY, PostgresServer } from '../postgres/server.ts';
import { ANN, newConversation } from './store/world.ts';

const NO_OPENSSL =
  spawnSync('openssl', ['version']).status === 0 ? null : 'openssl, which makes the certificate, is not installed.';

test('a PostgreSQL store uses TLS, and only to a server whose certificate it trusts', async (context) => {
  const missing = NO_POSTGRES ?? NO_OPENSSL;
  if (missing !== null) return context.skip(missing);
  const subnet = `127.${randomInt(1, 255)}.${randomInt(1, 255)}`;
  const [named, unnamed] = [`${subnet}.1`, `${subnet}.2`];
  const server = new PostgresServer();
  try {
    const authority = demandTls(server, named);
    await server.start([`listen_addresses=${named},${unnamed}`, 'ssl=on']);
    const at = (host: string, options: string) => `postgres://throughline@${host}/postgres${options}`;
    const trusted = `?sslmode=verify-full&sslrootcert=${encodeURIComponent(authority)}`;

    const store = await openPostgresStore({ url: at(named, trusted), connections: 2 });
    const heard = new Promise<readonly string[] | null>((resolve) => store.listen(resolve));
    const id = await newConversation(store);
    expect(await store.findConversation(ANN, id)).not.toBeNull();
    expect(await heard).toBeDefined();
    const rows = await server.query(
      "SELECT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.application_name LIKE 'throughline%'",
    );
    expect(rows.length).toBeGreaterThan(1);
    expect(rows.filter(({ ssl }) => ssl !== true)).toEqual([]);
    await store.close();

    const refused = (host: string, options: string) =>
      openPostgresStore({ url: at(host, options), connections: 1 }).then(
        () => 'opened',
        ({ message }: ThroughlineError) => message,
      );
    expect(await refused(named, '?sslmode=verify-full')).toContain('is not trusted');
    expect(await refused(unnamed, trusted)).toContain('not for this host');
    expect(await refused(named, '')).toContain('demands TLS');
  } finally {
    await server.stop();
    server.remove();
  }
});

/** Makes the server accept TCP only with TLS. Returns the file of the authority, which is the certificate itself. */
function demandTls({ folder }: PostgresServer, host: string): string {
  const data = join(folder, 'data');
  const [key, certificate] = [join(data, 'server.key'), join(data, 'server.crt')];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const name = ['-subj', `/CN=${host}`, '-addext', `subjectAltName=IP:${host}`];
  execFileSync('openssl', ['req', '-x509', ...kind, ...name, '-keyout', key, '-out', certificate], { stdio: 'pipe' });
  writeFileSync(join(data, 'pg_hba.conf'), 'local all all trust\nhostssl all all 127.0.0.0/8 trust\n');
  const { uid, gid } = NOBODY;
  if (uid !== undefined && gid !== undefined) for (const file of [key, certificate]) chownSync(file, uid, gid);
  return certificate;
}
