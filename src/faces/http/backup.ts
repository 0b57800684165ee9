import { createReadStream } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { checkOperator, checkScope, type Principal } from './access/authenticate.ts';
import { Refusal } from './refusal.ts';
import { type BeginStream, watchReader } from './streams/event-stream.ts';
import type { Log } from './telemetry/log.ts';

/** A copy of the whole data that was made for one caller. */
interface BackupFile {
  readonly path: string;
  readonly bytes: number;
  /** Called when it was sent, or cannot be sent. */
  remove(): Promise<void>;
}

/** Throws `too_many` while another one is made or sent, `storage_full`, and `storage_damaged`. */
export type MakeBackup = (signal: AbortSignal) => Promise<BackupFile>;

interface Asked {
  readonly principal: Principal;
  /** The owner that the server was started for. */
  readonly owner: string;
  readonly make: MakeBackup | undefined;
  /** Aborted when the caller has gone. */
  readonly left: AbortSignal;
  /** Aborted when the server begins to stop. */
  readonly draining: AbortSignal;
  readonly log: Log;
  readonly begin: BeginStream;
  readonly headers: Readonly<Record<string, string>>;
}

/** A caller that reads nothing for so long is disconnected: the copy takes disk space until it was sent. */
const STALL_MS = 30_000;
const TYPE = 'application/vnd.sqlite3';

/**
 * Sends a backup. The copy is made and checked before the first byte, so that an error can still be reported. The length is in the
 * header, so that a partial copy is noticed.
 */
export async function sendBackup({
  principal,
  owner,
  make,
  left,
  draining,
  log,
  begin,
  headers,
}: Asked): Promise<Response> {
  checkScope(principal, 'admin');
  checkOperator(principal, owner, 'A backup has the data of all owners.');
  if (make === undefined) throw new Refusal('not_found', 'This server makes no backups.');
  draining.throwIfAborted();
  const made = await make(AbortSignal.any([left, draining])).catch((error) => {
    draining.throwIfAborted();
    throw error;
  });
  const about = {
    'content-type': TYPE,
    'content-length': `${made.bytes}`,
    'content-disposition': 'attachment; filename="throughline.db"',
  };
  log.info({ by: principal.by, bytes: made.bytes }, 'sending a backup');
  return begin({ ...headers, ...about }, async (outgoing: ServerResponse) => {
    const endWatch = watchReader(outgoing, STALL_MS, () => outgoing.destroy());
    try {
      // Without `end`, the stream reads once more to find the end. Meanwhile a caller that has all bytes may disconnect.
      await pipeline(createReadStream(made.path, { end: made.bytes - 1 }), outgoing);
    } catch (err) {
      log.warn({ err, by: principal.by }, 'a backup was not sent completely');
    } finally {
      endWatch();
      await made.remove();
    }
  });
}
