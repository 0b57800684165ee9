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
 * A server of the version before beside one of this version, on one database. The version before is this checkout without its last migration; or,
 * really, the checkout that THROUGHLINE_OLDER_CHECKOUT names, whose schema has to be one step older.
 */
const GIVEN = process.env.THROUGHLINE_OLDER_CHECKOUT;
const OLDER = GIVEN ?? join(import.meta.dirname, '../../..');
const PRELOAD =
  GIVEN === undefined ? `--import '${pathToFileURL(join(import.meta.dirname, 'one-schema-older.ts'))}'` : '';

const postgres = postgresServer();

if (NO_POSTGRES === null) describe('servers of two versions on one PostgreSQL', versions);
else test('servers of two versions on one PostgreSQL', (context) => context.skip(NO_POSTGRES ?? ''));

/** In place of `node PROGRAM …`. */
function older(home: CliHome): { node: string } {
  const node = join(home.path, 'node-of-the-version-before');
  const program = join(OLDER, 'bin/throughline.js');
  writeFileSync(node, `#!/bin/sh\nshift\nexec '${process.execPath}' ${PRELOAD} '${program}' "$@"\n`);
  chmodSync(node, 0o755);
  return { node };
}

const ask = async (caller: Caller, prompt: string) =>
  (await caller.ok('POST', '/conversations/notes/turns', { prompt })).turn;

interface Shown {
  readonly seq: number;
  readonly kind: string;
  readonly turnId: string | null;
  readonly payload: object;
}

/** The events of the conversation after a number, up to the one that is looked for. */
async function eventsUntil(caller: Caller, isLast: (event: Shown) => boolean, after = 0): Promise<Shown[]> {
  const seen: Shown[] = [];
  for await (const { data } of caller.events(`/conversations/notes/events?after=${after}`)) {
    seen.push(data);
    if (isLast(data)) break;
  }
  return seen;
}

const WHICH = 'Which codewords have you seen?';

function versions(): void {
  test('turns of either run at the other, in both directions, and one that is killed is taken over', async () => {
    const database = await postgres().database();
    const rows = (sql: string) => postgres().query(sql, [], database);
    const url = postgres().url(database);
    const all = new Servers(url);
    onTestFinished(() => all[Symbol.asyncDispose]());
    // What this checkout does needs its tables; a real older one makes its own, and this version brings them up to date beside it.
    if (GIVEN === undefined) await (await openPostgresStore({ url, connections: 1 })).close();
    const home = all.newHome();
    const before = await all.serve(home, older(home));
    await before.caller.finished(await ask(before.caller, 'The codeword is osprey'));
    const now = await all.serve(all.newHome());
    const rung = async () => (await now.caller.ok('GET', '/conversations/notes/sessions')).receipts.at(-1).rung;

    expect((await now.caller.finished(await ask(now.caller, WHICH))).reply).toContain('osprey');
    expect(await rung(), 'accepted at this version, run at the one before').toBe('live');
    const hanging = await ask(before.caller, '/say Here.\n/hang');
    const shown = await eventsUntil(now.caller, ({ turnId, kind }) => turnId === hanging.id && kind === 'turn.update');
    await now.caller.ok('POST', `/turns/${hanging.id}/cancel`);
    const after = shown.at(-1)?.seq ?? 0;
    const rest = await eventsUntil(before.caller, ({ kind }) => kind === 'turn.ended', after);
    expect(rest.at(-1)).toMatchObject({ seq: after + rest.length, payload: { outcome: 'cancelled' } });

    before.running.kill('SIGTERM');
    expect(await before.running.ended).toMatchObject({ code: 0 });
    expect((await now.caller.finished(await ask(now.caller, WHICH))).reply).toContain('osprey');
    expect(await rung(), 'handed over').toBe('resume');
    if (GIVEN === undefined) {
      // It ended in the middle of the upgrade, and comes back.
      const again = await all.serve(home, older(home));
      expect((await again.caller.finished(await ask(again.caller, WHICH))).reply).toContain('osprey');
      expect(await rung(), 'accepted at the version before, run at this one').toBe('live');
      const left = await ask(again.caller, '/say Here.\n/hang');
      await eventsUntil(again.caller, ({ turnId, kind }) => turnId === left.id && kind === 'turn.update');
      now.running.kill('SIGKILL');
      const ended = async () => (await again.caller.ok('GET', `/turns/${left.id}`)).state === 'interrupted';
      await until('the version before takes over', ended);
      expect((await again.caller.finished(await ask(again.caller, WHICH))).reply).toContain('osprey');
      expect(await again.caller.ok('GET', '/conversations/notes/verify')).toMatchObject({ broken: null });
      expect(again.running.stderr).not.toContain('internal error');
    }
    for (const { running } of [before, now]) expect(running.stderr).not.toContain('internal error');

    // One step more: the version before knows nothing of what it may not break.
    await rows('UPDATE schema_version SET version = version + 1');
    const refused = await home.start(['list', '--embedded'], older(home)).ended;
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /has the schema \d+ of a newer Throughline\.[\s\S]*knows schemas up to \d+.*Start the newer version/,
    );
  });
}
