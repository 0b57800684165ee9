import { statSync } from 'node:fs';
import type { StoreMeasure } from '../../../ports/store/census.ts';
import type { Database } from '../file/database.ts';
import type { WriteQueue } from '../file/write-queue.ts';

const SIZE = `
  SELECT page_count * page_size AS bytes, freelist_count * page_size AS freeBytes
  FROM pragma_page_count, pragma_page_size, pragma_freelist_count`;

export function measure(db: Database, file: string, queue: Pick<WriteQueue, 'commits' | 'latency'>): StoreMeasure {
  const { bytes, freeBytes } = db.one<{ bytes: number; freeBytes: number }>(SIZE) ?? { bytes: 0, freeBytes: 0 };
  const logBytes = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  return { bytes, logBytes, freeBytes, commits: queue.commits, commitMs: queue.latency() };
}
