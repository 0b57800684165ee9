import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openPostgresStore } from '../../../src/stores/postgres/store.ts';
import { until } from '../../faults/harness/until.ts';
import { NO_POSTGRES, postgresServer } from '../../postgres/server.ts';
import { Servers } from '../../postgres/servers.ts';
import type { CliHome } from '../cli/process.ts';
import type { Caller } from '../http/support/caller.ts';

/*
 * A server of the previous version beside one of this version, on one database. The previous version is this checkout without its last migration. With
 * THROUGHLINE_OLDER_CHECKOUT it is a real older checkout, whose schema must be one step older.
 */
const OLDER_CHECKOUT = process.env.THROUGHLINE_OLDER_CHECKOUT;
const OLDER = OLDER_CHECKOUT ?? join(import.meta.dirname, '../../..');
const PRELOAD =
  OLDER_CHECKOUT === undefined ? `--import '${pathToFileURL(join(import.meta.dirname, 'one-schema-older.ts'))}'` : '';

const postgres = postgresServer();

if (NO_POSTGRES === null) describe('servers of two versions on one PostgreSQL', versions);
else test('servers of two versions on one PostgreSQL', (context) => context.skip(NO_POSTGRES ?? ''));

/** A replacement for `node` that runs the program of the previous version. */
function older(home: CliHome): { node: string } {
  const node = join(home.path, 'node-of-the-previous-version');
  const program = join(OLDER, 'bin/throughline.js');
  writeFileSync(node, `#!/bin/sh\nshift\nexec '${process.execPath}' ${PRELOAD} '${program}' "$@"\n`);
  chmodSync(node, 0o755);
  return { node };
}

const ask = async (caller: Caller, prompt: string) =>
  (await caller.ok('POST', '/conversations/notes/turns', { prompt })).turn;

interface PublicEvent {
  readonly seq: number;
  readonly kind: string;
  readonly turnId: string | null;
  readonly payload: object;
}

/** The events of the conversation after a number, up to the first one that `isLast` accepts. */
async function eventsUntil(caller: Caller, isLast: (event: PublicEvent) => boolean, after = 0): Promise<PublicEvent[]> {
  const seen: PublicEvent[] = [];
  for await (const { data } of caller.events(`/conversations/notes/events?after=${after}`)) {
    seen.push(data);
    if (isLast(data)) break;
  }
  return seen;
}

const WHICH = 'Which codewords have you seen?';

function versions(): void {
  test('run the turns of each other in both directions, and take over when one is killed', async () => {
    const database = await postgres().database();
    const rows = (sql: string) => postgres().query(sql, [], database);
    const url = postgres().url(database);
    const all = new Servers(url);
    onTestFinished(() => all[Symbol.asyncDispose]());
    // The program of this checkout needs the tables of the last migration. A real older checkout creates its own, and this version upgrades them.
    if (OLDER_CHECKOUT === undefined) await (await openPostgresStore({ url, connections: 1 })).close();
    const home = all.newHome();
    const previous = await all.serve(home, older(home));
    await previous.caller.finished(await ask(previous.caller, 'The codeword is osprey'));
    const current = await all.serve(all.newHome());
    const rung = async () => (await current.caller.ok('GET', '/conversations/notes/sessions')).receipts.at(-1).rung;

    expect((await current.caller.finished(await ask(current.caller, WHICH))).reply).toContain('osprey');
    expect(await rung(), 'accepted by this version, run by the previous one').toBe('live');
    const hanging = await ask(previous.caller, '/say Here.\n/hang');
    const shown = await eventsUntil(
      current.caller,
      ({ turnId, kind }) => turnId === hanging.id && kind === 'turn.update',
    );
    await current.caller.ok('POST', `/turns/${hanging.id}/cancel`);
    const after = shown.at(-1)?.seq ?? 0;
    const rest = await eventsUntil(previous.caller, ({ kind }) => kind === 'turn.ended', after);
    expect(rest.at(-1)).toMatchObject({ seq: after + rest.length, payload: { outcome: 'cancelled' } });

    previous.running.kill('SIGTERM');
    expect(await previous.running.ended).toMatchObject({ code: 0 });
    expect((await current.caller.finished(await ask(current.caller, WHICH))).reply).toContain('osprey');
    expect(await rung(), 'handed over').toBe('resume');
    if (OLDER_CHECKOUT === undefined) {
      // The previous version is started again during the upgrade.
      const again = await all.serve(home, older(home));
      expect((await again.caller.finished(await ask(again.caller, WHICH))).reply).toContain('osprey');
      expect(await rung(), 'accepted by the previous version, run by this one').toBe('live');
      const unfinished = await ask(again.caller, '/say Here.\n/hang');
      await eventsUntil(again.caller, ({ turnId, kind }) => turnId === unfinished.id && kind === 'turn.update');
      current.running.kill('SIGKILL');
      const ended = async () => (await again.caller.ok('GET', `/turns/${unfinished.id}`)).state === 'interrupted';
      await until('the previous version has taken over', ended);
      expect((await again.caller.finished(await ask(again.caller, WHICH))).reply).toContain('osprey');
      expect(await again.caller.ok('GET', '/conversations/notes/verify')).toMatchObject({ broken: null });
      expect(again.running.stderr).not.toContain('internal error');
    }
    for (const { running } of [previous, current]) expect(running.stderr).not.toContain('internal error');

    // A schema that is one more step newer may have rules that the previous version would break, so it refuses to run.
    await rows('UPDATE schema_version SET version = version + 1');
    const refused = await home.start(['list', '--embedded'], older(home)).ended;
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /has the schema \d+ of a newer Throughline\.[\s\S]*supports schemas up to \d+.*Start the newer version/,
    );
  });
}
