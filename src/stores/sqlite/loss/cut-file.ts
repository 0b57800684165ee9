import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/*
 * SQLite reads pages behind the end of its file as empty ones, and reports that only when it meets one. Here a data file that was cut is noticed
 * when it is opened: its first page says how many pages it has. After a kill in the middle of a checkpoint the file may be shorter than that, and
 * then the log has the others.
 */

const HEADER_BYTES = 100;
const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** SQLite never writes the page with this byte: it locks it. */
const LOCK_BYTE = 0x4000_0000;

/** Whether pages of the data file are neither in it nor in its log. For a file that this process has not opened yet: closing it would give up the locks. */
export function isCutShort(file: string): boolean {
  return reading(file, (data) => {
    const header = read(data, 0, HEADER_BYTES);
    if (header.length < HEADER_BYTES) return false;
    // Only then is the number of pages valid.
    if (header.readUInt32BE(24) !== header.readUInt32BE(92)) return false;
    const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16);
    const pages = header.readUInt32BE(28);
    const inFile = () => Math.floor(fstatSync(data).size / pageBytes);
    if (inFile() >= pages) return false;
    const inLog = pagesInLog(`${file}-wal`, pageBytes);
    // Asked last: another process may move pages from the log to the file meanwhile, and start the log again.
    const whole = inFile();
    const locked = Math.floor(LOCK_BYTE / pageBytes) + 1;
    for (let page = whole + 1; page <= pages; page += 1) if (page !== locked && !inLog.has(page)) return true;
    return false;
  });
}

/** Those of its frames that belong to it: after a checkpoint it is written from its beginning again, with another salt. */
function pagesInLog(log: string, pageBytes: number): Set<number> {
  const pages = new Set<number>();
  reading(log, (descriptor, bytes) => {
    const salt = read(descriptor, 16, 8);
    const frameBytes = FRAME_HEADER_BYTES + pageBytes;
    for (let at = LOG_HEADER_BYTES; at + frameBytes <= bytes; at += frameBytes) {
      const frame = read(descriptor, at, FRAME_HEADER_BYTES);
      if (!frame.subarray(8, 16).equals(salt)) break;
      pages.add(frame.readUInt32BE(0));
    }
    return true;
  });
  return pages;
}

/** False: it cannot be read. */
function reading(file: string, look: (descriptor: number, bytes: number) => boolean): boolean {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch {
    return false;
  }
  try {
    return look(descriptor, fstatSync(descriptor).size);
  } finally {
    closeSync(descriptor);
  }
}

function read(descriptor: number, at: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  return bytes.subarray(0, readSync(descriptor, bytes, 0, length, at));
}
