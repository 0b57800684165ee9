// vitest runs this before the tests. It puts their temporary folders into memory if the machine has enough: every commit of SQLite
// waits for the disk, and several test files would wait for the same disk.
// A killed process loses nothing that it wrote, in memory as on disk. Only a loss of power would make a difference.
// The files of `ON_DISK` (test-areas.js) use the disk (`test/temporary-files.ts`).
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ON_DISK } from './test-areas.js';

const MEMORY = '/dev/shm';
/** More than enough: the data homes of tests are small, and removed after each test. */
const ROOM_BYTES = 4 * 2 ** 30;
/** Short, because the path of a socket may have only about a hundred characters. */
const NAME = /^tl-(\d+)$/;

/**
 * Where the temporary folders of a test file go.
 * @param {string} file its path in the checkout
 * @param {Readonly<Record<string, string | undefined>>} env as `setup` has left it
 */
export function folderOf(file, { THROUGHLINE_TEST_DISK: disk = tmpdir(), THROUGHLINE_TEST_MEMORY: memory = disk }) {
  return ON_DISK.some((start) => file.startsWith(start)) ? disk : memory;
}

/** @returns {(() => void) | undefined} the clean-up after the tests */
export default function setup() {
  process.env.THROUGHLINE_TEST_DISK = tmpdir();
  // First: what a killed run has left may fill all the room.
  if (existsSync(MEMORY)) removeLeft();
  if (!hasRoom()) return undefined;
  const folder = join(MEMORY, `tl-${process.pid}`);
  mkdirSync(folder);
  const remove = () => removeFolder(folder);
  if (!mayRunPrograms(folder)) {
    remove();
    return undefined;
  }
  chmodSync(folder, 0o1777); // as /tmp: some tests run programs as another user
  process.env.THROUGHLINE_TEST_MEMORY = folder;
  return remove;
}

function hasRoom() {
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= ROOM_BYTES;
  } catch {
    return false;
  }
}

/** In containers, /dev/shm is often mounted `noexec`. @param {string} folder */
function mayRunPrograms(folder) {
  const program = join(folder, 'program');
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
  const { status } = spawnSync(program);
  rmSync(program);
  return status === 0;
}

/** Removes the folders of killed test runs of this user. In one of another user, a folder could become a link while it is removed. */
export function removeLeft(memory = MEMORY) {
  for (const name of readdirSync(memory)) {
    const pid = Number(NAME.exec(name)?.[1]);
    const folder = join(memory, name);
    const isOurs = lstatSync(folder, { throwIfNoEntry: false })?.uid === process.getuid?.();
    if (pid > 0 && isOurs && !isRunning(pid)) removeFolder(folder);
  }
}

/** A test that was killed may have left a disk mounted there, which only root can have done. @param {string} folder */
function removeFolder(folder) {
  for (const path of mountedBelow(folder)) spawnSync('umount', ['-l', path]);
  rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
}

/** @param {string} folder */
function mountedBelow(folder) {
  const mounts = existsSync('/proc/mounts') ? readFileSync('/proc/mounts', 'utf8').split('\n') : [];
  return mounts.map((line) => line.split(' ')[1] ?? '').filter((path) => path.startsWith(`${folder}/`));
}

/** @param {number} pid */
function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM';
  }
}
