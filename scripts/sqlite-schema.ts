// Writes src/stores/sqlite/migrations/current.ts: the schema that all migrations together create, as one script.
import { writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { MIGRATIONS } from '../src/stores/sqlite/migrations/list.ts';

/** Rows that a new database has. `migrations.test.ts` compares them with those of the migrations. */
const ROWS = `INSERT INTO titles (titles, rank) VALUES ('secure-delete', 1);
INSERT INTO facts (owner, name, value) VALUES ('', 'log', lower(hex(randomblob(16)))), ('', 'changes', '0');
`;

/** Tables that SQLite creates itself when it creates a virtual table. */
const MADE_WITH_ANOTHER = /^(words|titles)_(data|idx|docsize|config)$/;

function currentSchema(): string {
  const db = new DatabaseSync(':memory:');
  for (const sql of MIGRATIONS) db.exec(sql);
  const made = db.prepare('SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL').all();
  db.close();
  const ours = made.filter(({ name }) => !MADE_WITH_ANOTHER.test(String(name)));
  return `\n${ours.map(({ sql }) => `${sql};\n`).join('')}${ROWS}`;
}

if (import.meta.main) {
  const file = new URL('../src/stores/sqlite/migrations/current.ts', import.meta.url);
  const comment =
    'What `MIGRATIONS` make of an empty database, in a third of the time. Written by scripts/sqlite-schema.ts.';
  writeFileSync(file, `/** ${comment} */\nexport const CURRENT_SCHEMA = \`${currentSchema()}\`;\n`);
}
