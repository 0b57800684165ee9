import { statSync } from 'node:fs';
import type { StoreMeasure } from '../../../ports/store/census.ts';
import type { CommitTimes } from '../../shared/commit-times.ts';
import type { Database } from '../file/database.ts';

const SIZE = `
  SELECT page_count * page_size AS bytes, freelist_count * page_size AS freeBytes
  FROM pragma_page_count, pragma_page_size, pragma_freelist_count`;

export function measure(db: Database, file: string, times: CommitTimes): StoreMeasure {
  const { bytes, freeBytes } = db.one<{ bytes: number; freeBytes: number }>(SIZE) ?? { bytes: 0, freeBytes: 0 };
  const logBytes = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  return { bytes, logBytes, freeBytes, commits: times.count, commitMs: times.latency() };
}
