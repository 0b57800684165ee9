// Databases that older versions of this program wrote. `schemas/README.md` describes them.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { brotliDecompressSync } from 'node:zlib';

/** Writes the database of an older version to this path. */
export function writeOlder(file: string, schema: number): void {
  const name = `schemas/schema-${String(schema).padStart(2, '0')}.db.br`;
  writeFileSync(file, brotliDecompressSync(readFileSync(new URL(name, import.meta.url))), { mode: 0o600 });
  const db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode = WAL'); // as in every version; the stored copy does not have it
  db.close();
}

/** Makes the directory a data home with the database of this schema. Returns the path of the database. */
export function fillHome(home: string, schema: number): string {
  mkdirSync(home, { recursive: true });
  const file = join(home, 'throughline.db');
  writeOlder(file, schema);
  writeFileSync(join(home, 'place'), `${placeIn(file)}\n`, { mode: 0o600 });
  return file;
}

/** The place that its conversations are tied to. */
export function placeIn(file: string): string {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return (db.prepare('SELECT place FROM conversations LIMIT 1').get() as { place: string }).place;
  } finally {
    db.close();
  }
}

export function schemaOf(file: string): number {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return (db.prepare('PRAGMA user_version').get() as { user_version: number }).user_version;
  } finally {
    db.close();
  }
}
