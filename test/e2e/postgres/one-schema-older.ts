// For `node --import`: runs the program of this checkout without its last migration of PostgreSQL.
import { registerHooks } from 'node:module';

const LIST = /(const MIGRATIONS: readonly string\[\] = \[.*), \w+\];/;

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.endsWith('/src/stores/postgres/server/upgrade.ts')) return loaded;
    const source = String(loaded.source);
    if (!LIST.test(source)) throw new Error('This file does not find the list of migrations in upgrade.ts any more.');
    return { ...loaded, source: source.replace(LIST, '$1];') };
  },
});
