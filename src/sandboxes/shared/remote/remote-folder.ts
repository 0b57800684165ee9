import { randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import { ThroughlineError } from '../../../core/errors.ts';
import type { Entry, FileRead, FileStat, Folder, Range, Space, Watch } from '../../../ports/sandbox.ts';
import { type Action, checkedPath, compareContent, folderMode, WRITES } from '../local-folder.ts';
import { throughLink } from '../opened.ts';
import {
  type At,
  appendScript,
  EXIT,
  listScript,
  putScript,
  readScript,
  removeScript,
  replaceScript,
  roomScript,
  statRootScript,
  statScript,
} from './file-scripts.ts';
import type { RemoteMachine, ScriptResult } from './machine.ts';

const MOST_ENTRIES = 100_000;
/** How often a watched file is checked: the other machine reports no changes. */
const LOOK_MS = 250;

/** A folder of another machine. */
export class RemoteFolder implements Folder {
  readonly path: string;
  readonly #machine: RemoteMachine;

  /** `root`: an absolute path there, without links. */
  constructor(machine: RemoteMachine, root: string) {
    this.path = root;
    this.#machine = machine;
  }

  async stat(path: string): Promise<FileStat | null> {
    const script = path === '' ? statRootScript(this.path) : statScript(this.#at(path));
    const ran = await this.#machine.run(script);
    return this.#isThere(ran, path, 'inspected') ? describe(ran.stdout.toString()) : null;
  }

  async read(path: string, { from = 0, most }: Range): Promise<FileRead | null> {
    const ran = await this.#machine.run(readScript(this.#at(path), from, most));
    if (!this.#isThere(ran, path, 'read')) return null;
    const line = ran.stdout.indexOf('\n');
    return { ...describe(ran.stdout.toString('utf8', 0, line)), bytes: ran.stdout.subarray(line + 1) };
  }

  async list(path: string): Promise<Entry[] | null> {
    const ran = await this.#machine.run(listScript(this.path, this.#full(path), MOST_ENTRIES));
    if (ran.code === EXIT.tooMany) throw new ThroughlineError('too_large', `${path} has too many entries.`);
    if (!this.#isThere(ran, path, 'listed')) return null;
    const entries = ran.stdout.toString().split('\0').filter(Boolean);
    return entries.map((entry) => ({ name: entry.slice(1), kind: KINDS[entry[0] ?? ''] ?? 'other' }));
  }

  async space(path: string): Promise<Space | null> {
    const ran = await this.#machine.run(roomScript(this.path, this.#full(path)));
    if (!this.#isThere(ran, path, 'inspected')) return null;
    const [access, disk = ''] = ran.stdout.toString().split('\n');
    const blocks = /\s(\d+)\s+\d+%/.exec(disk)?.[1];
    return { writable: access === 'writable', freeBytes: blocks === undefined ? null : Number(blocks) * 1024 };
  }

  async put(path: string, content: string | Uint8Array): Promise<'written' | 'same' | 'exists'> {
    const bytes = Buffer.from(content);
    const ran = await this.#machine.run(putScript(this.#written(path, 0o600)), { input: bytes });
    if (ran.code === 0) return 'written';
    if (ran.code !== EXIT.exists) throw this.#failure(ran, path, 'written');
    return compareContent(this, path, bytes);
  }

  async replace(path: string, content: string | Uint8Array, { mode = 0o600 } = {}): Promise<void> {
    const script = replaceScript(this.#written(path, mode));
    const ran = await this.#machine.run(script, { input: Buffer.from(content) });
    if (ran.code !== 0) throw this.#failure(ran, path, 'written');
  }

  async append(path: string, content: string | Uint8Array): Promise<boolean> {
    const ran = await this.#machine.run(appendScript(this.#at(path)), { input: Buffer.from(content) });
    return this.#isThere(ran, path, 'written');
  }

  async remove(path: string): Promise<void> {
    this.#isThere(await this.#machine.run(removeScript(this.#at(path))), path, 'removed');
  }

  async watch(path: string, changed: () => void): Promise<Watch> {
    this.#at(path);
    const version = () =>
      this.stat(path).then(
        (stat) => stat?.version ?? '',
        (error: unknown) => String(error),
      );
    return watching(await version(), version, changed);
  }

  /** Whether the script did its work; false: there is nothing of that name. */
  #isThere(ran: ScriptResult, path: string, action: Action): boolean {
    if (ran.code === 0) return true;
    if (ran.code === EXIT.missing || isMissing(ran)) return false;
    throw this.#failure(ran, path, action);
  }

  #failure({ code, stderr }: ScriptResult, path: string, action: Action): ThroughlineError {
    const full = path === '' ? this.path : `${this.path}/${path}`;
    const cannot = `${full} cannot be ${action}`;
    if (code === EXIT.link) return throughLink(full);
    if (code === EXIT.notThis) return new ThroughlineError('refused', `${cannot}: it is of another kind.`);
    if (/no space left|quota exceeded|file too large/i.test(stderr)) {
      const hint = `Free some space on ${this.#machine.name}.`;
      return new ThroughlineError('storage_full', `${cannot}: the disk is full.`, { hint });
    }
    if (/permission denied|not permitted|read-only/i.test(stderr)) {
      const errorCode = WRITES.includes(action) ? 'storage_readonly' : 'refused';
      const hint = 'Check who owns it, and its permissions.';
      return new ThroughlineError(errorCode, `${cannot}: permission denied.`, { hint });
    }
    return new ThroughlineError('refused', `${cannot} (${stderr.trim() || `the script ended with ${code}`}).`);
  }

  #full(path: string): string {
    return path === '' ? this.path : `${this.path}/${checkedPath(this, path)}`;
  }

  #at(path: string): At {
    const full = `${this.path}/${checkedPath(this, path)}`;
    return { root: this.path, folder: posix.dirname(full), name: posix.basename(full) };
  }

  #written(path: string, mode: number) {
    return { ...this.#at(path), temporary: `.${randomUUID()}.tmp`, mode, folderMode: folderMode(mode) };
  }
}

const KINDS: Readonly<Record<string, Entry['kind']>> = { f: 'file', d: 'folder', l: 'link', o: 'other' };

/** The file was removed between two steps of a script. */
function isMissing({ code, stderr }: ScriptResult): boolean {
  return (code === 1 || code === 2) && /no such file/i.test(stderr);
}

/** By the first digit of the mode. */
const TYPES: Readonly<Record<string, FileStat['kind']>> = { '8': 'file', '4': 'folder', a: 'link' };

/** `line`: in the format `STAT_FORMAT`. */
function describe(line: string): FileStat {
  const [mode = '', device, inode, size, ...times] = line.trim().split(' ');
  const [modified = ''] = times.join(' ').split('|');
  return {
    kind: (mode.length === 4 && TYPES[mode[0] ?? '']) || 'other',
    size: Number(size),
    modifiedAt: timeOf(modified),
    id: `${device}:${inode}`,
    version: `${device}:${inode}:${size}:${times.join(' ')}`,
  };
}

/** For example "2026-01-31 09:00:00.123456789 +0100". */
function timeOf(text: string): number {
  const [, date, time, fraction = '', zone = '+0000'] = /^(\S+) (\d+:\d+:\d+)(\.\d{1,3})?\d* ?(\S*)$/.exec(text) ?? [];
  return Date.parse(`${date}T${time}${fraction}${zone.replace(/(\d\d)$/, ':$1') || 'Z'}`);
}

/** Each look begins some time after the one before it has ended. */
function watching(first: string, version: () => Promise<string>, changed: () => void): Watch {
  let [last, timer, isStopped] = [first, null as NodeJS.Timeout | null, false];
  const later = () => {
    timer = setTimeout(look, LOOK_MS).unref();
  };
  const look = async () => {
    const now = await version();
    if (isStopped) return;
    if (now !== last) changed();
    last = now;
    later();
  };
  later();
  return {
    stop() {
      isStopped = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
}
