/*
 * The system calls that set the mode of a file. A setuid or setgid program of ours, in a folder that others reach, gives them the
 * privileges of our user, also when the sandbox has ended. So filters of system calls refuse these bits.
 */

/** The positions of the mode and, for calls that create a file only with some flags, of the flags. */
export interface Positions {
  readonly mode: number;
  readonly flags?: number;
}

export type SetsMode =
  | 'chmod'
  | 'fchmod'
  | 'fchmodat'
  | 'fchmodat2'
  | 'creat'
  | 'mknod'
  | 'mknodat'
  | 'open'
  | 'openat';

/** `openat2` has its mode in memory, which no filter sees. It is answered as unknown, and programs use `openat` instead. */
export const SETS_MODE: Readonly<Record<SetsMode, Positions>> = {
  chmod: { mode: 1 },
  fchmod: { mode: 1 },
  fchmodat: { mode: 2 },
  fchmodat2: { mode: 2 },
  creat: { mode: 1 },
  mknod: { mode: 1 },
  mknodat: { mode: 2 },
  open: { mode: 2, flags: 1 },
  openat: { mode: 3, flags: 2 },
};

export const SETUID = 0o4000;
export const SETGID = 0o2000;
/** The flags with which `open` uses its mode: O_CREAT, and that of O_TMPFILE. */
export const CREATE = 0o100;
export const TEMPORARY = 0o20000000;
