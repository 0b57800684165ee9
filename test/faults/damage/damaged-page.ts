import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

/**
 * Overwrites the pages of a table or an index that contain a text, as a bad sector or a stray write does. No process may have the file
 * open. Throws when there is no such page.
 */
export function damagePages(file: string, table: string, text: string | Buffer): void {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  const size = (db.prepare('PRAGMA page_size').get() as { page_size: number }).page_size;
  const pages = db.prepare("SELECT pageno FROM dbstat WHERE name = ? AND pagetype <> 'internal'").all(table);
  db.close();
  const bytes = readFileSync(file);
  const hit = pages
    .map((row) => (Number(row.pageno) - 1) * size)
    .filter((start) => bytes.subarray(start, start + size).includes(text));
  if (hit.length === 0) throw new Error(`no page of ${table} contains that`);
  const handle = openSync(file, 'r+');
  for (const start of hit) writeSync(handle, Buffer.alloc(size, 0xa5), 0, size, start);
  fsyncSync(handle);
  closeSync(handle);
}
