// For `node --import`: the program of this checkout, as if it did not know the last migration of PostgreSQL yet.
import { registerHooks } from 'node:module';

const LIST = /(const MIGRATIONS: readonly string\[\] = \[.*), \w+\];/;

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.endsWith('/src/stores/postgres/server/upgrade.ts')) return loaded;
    const source = String(loaded.source);
    if (!LIST.test(source)) throw new Error('The list of migrations is not where it was.');
    return { ...loaded, source: source.replace(LIST, '$1];') };
  },
});
