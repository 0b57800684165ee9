// An agent that asks far more permission questions than people can answer. What that costs is counted: the calls of our store, the
// transactions of the database, and what is stored.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { compose } from '../../../src/compose.ts';
import { MOST_OPEN_QUESTIONS } from '../../../src/core/turn/permission.ts';
import { createEngine } from '../../../src/engine/engine.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import type { Store } from '../../../src/ports/store.ts';
import { allEvents, ended } from '../../e2e/support/conversations.ts';
import { NO_POSTGRES, postgresServer } from '../../postgres/server.ts';
import { smallAgent } from '../support/acp-agents.ts';

const postgres = postgresServer();
const QUESTIONS = 1_000;

describe('the questions of an agent that asks a thousand at once cost as much as they are many', () => {
  test('on SQLite', () => ask(null));
  test('on PostgreSQL', async (context) => {
    if (NO_POSTGRES !== null) return context.skip(NO_POSTGRES);
    const database = await postgres().database();
    const before = await transactions(database);
    await ask(database);
    // Each question has its commit, and readers of the events read after it.
    expect((await transactions(database)) - before).toBeLessThan(10 * QUESTIONS);
  });
});

async function ask(database: string | null): Promise<void> {
  await using site = await Site.open(database);
  const { engine } = site;
  await engine.ensure({ key: 'chat' });
  const { turn } = await engine.submit('chat', `ask ${QUESTIONS}`);
  let asked = 0;
  for await (const { kind } of engine.follow('chat')) {
    if (kind === 'permission.asked') asked += 1;
    if (asked === QUESTIONS) break;
  }
  const open = await engine.permissions({ open: true, limit: QUESTIONS });
  expect(open.map(({ title }) => title)).toEqual(titles(1, MOST_OPEN_QUESTIONS));
  await engine.cancel(turn.id);
  expect((await ended(engine, turn)).state).toBe('cancelled');

  const { denied } = await engine.answerOf(turn.id);
  expect(denied.map(({ title }) => title)).toEqual(titles(MOST_OPEN_QUESTIONS + 1, QUESTIONS));
  expect(new Set(denied.map(({ reason }) => reason))).toEqual(new Set(['100 questions of its turn are open already']));
  const kinds = (await allEvents(engine, 'chat')).map(({ kind }) => kind);
  const count = (kind: string) => kinds.filter((one) => one === kind).length;
  expect(count('permission.withdrawn')).toBe(MOST_OPEN_QUESTIONS);
  expect(count('permission.asked')).toBe(QUESTIONS);
  // Nobody answered, so no question was read. The turn looked at most once for each question that was open.
  expect(site.calls.get('findPermission') ?? 0).toBe(0);
  expect(site.calls.get('openPermissions')).toBeLessThan(2 * MOST_OPEN_QUESTIONS);
}

const titles = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `Question ${from + index}`);

/** What the database has committed so far. */
async function transactions(database: string): Promise<number> {
  const sql = 'SELECT xact_commit AS n FROM pg_stat_database WHERE datname = $1';
  const [row] = (await postgres().query(sql, [database])) as { n: string }[];
  return Number(row?.n);
}

/** A data home with the hostile agent, and an engine whose calls of the store are counted. */
class Site implements AsyncDisposable {
  readonly #path = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-questions-')));
  /** How often each verb of the store was called. */
  readonly calls = new Map<string, number>();
  engine!: Engine;

  /** `database`: on our PostgreSQL; null: SQLite. */
  static async open(database: string | null): Promise<Site> {
    const site = new Site();
    // It uses no model.
    const agent = smallAgent({ url: '' }, site.#path, ['hostile']);
    const store = database === null ? {} : { store: postgres().url(database) };
    const { parts } = await compose({
      home: site.#path,
      settings: { agents: { agent }, ...store },
      permissions: 'ask',
    });
    site.engine = createEngine({ ...parts, store: site.#counted(parts.store) }, 'local');
    return site;
  }

  #counted(store: Store): Store {
    return new Proxy(store, {
      get: (target, name) => {
        const verb = Reflect.get(target, name);
        if (typeof verb !== 'function') return verb;
        return (...args: unknown[]) => {
          this.calls.set(String(name), (this.calls.get(String(name)) ?? 0) + 1);
          return verb.apply(target, args);
        };
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine.close({ graceMs: 0 });
    rmSync(this.#path, { recursive: true, force: true, maxRetries: 20 });
  }
}
