import {
  CREATE,
  type Positions,
  SETGID,
  SETS_MODE,
  SETUID,
  type SetsMode,
  TEMPORARY,
} from '../shared/isolated/modes.ts';

/*
 * A filter of system calls, as a BPF program. Namespaces do not cover everything. The keyring of the session is inherited. Sockets of the
 * kind "vsock" lead from a virtual machine to its host, out of every network namespace. A setuid program stays when the sandbox has ended.
 * And most faults of kernels were found in calls that few programs need.
 */

type Architecture = 'x64' | 'arm64';

/** The numbers of <asm/unistd.h>. */
const DENIED: Readonly<Record<Architecture, readonly number[]>> = {
  x64: [
    ...[248, 249, 250], // add_key, request_key, keyctl: the keys of our user
    ...[165, 166, 155, 428, 429, 430, 431, 432, 433, 442, 467], // mount and its relatives
    ...[298, 321, 323, 425, 426, 427], // perf_event_open, bpf, userfaultfd, io_uring
    ...[175, 176, 246, 313, 320], // modules, kexec
    ...[103, 163, 167, 168, 169, 179, 443, 304], // syslog, acct, swap, reboot, quotactl, open_by_handle_at
  ],
  arm64: [
    ...[217, 218, 219],
    ...[40, 39, 41, 428, 429, 430, 431, 432, 433, 442, 467],
    ...[241, 280, 282, 425, 426, 427],
    ...[105, 106, 104, 273, 294],
    ...[116, 89, 224, 225, 142, 60, 443, 265],
  ],
};
const AUDIT: Readonly<Record<Architecture, number>> = { x64: 0xc000003e, arm64: 0xc00000b7 };
const IOCTL: Readonly<Record<Architecture, number>> = { x64: 16, arm64: 29 };
/** TIOCSTI inserts input into a terminal, TIOCLINUX pastes into one. */
const DENIED_IOCTLS = [0x5412, 0x541c];

/** On arm64, the first calls of a kind are missing: those without a folder. */
const CALLS_WITH_MODE: Readonly<Record<Architecture, Readonly<Partial<Record<SetsMode, number>>>>> = {
  x64: {
    ...{ chmod: 90, fchmod: 91, fchmodat: 268, fchmodat2: 452 },
    ...{ creat: 85, mknod: 133, mknodat: 259, open: 2, openat: 257 },
  },
  arm64: { fchmod: 52, fchmodat: 53, fchmodat2: 452, mknodat: 33, openat: 56 },
};
const OPENAT2 = 437;

const SOCKET: Readonly<Record<Architecture, number>> = { x64: 41, arm64: 198 };
/** The families of sockets that are allowed: unix, IPv4, IPv6, and netlink, which lists interfaces and routes. */
const FAMILIES = [1, 2, 10, 16];

const [LOAD, IF_EQUAL, IF_AT_LEAST, IF_ANY_BIT, RETURN] = [0x20, 0x15, 0x35, 0x45, 0x06];
const [ALLOW, NOT_PERMITTED, UNKNOWN, NO_FAMILY] = [0x7fff0000, 0x00050001, 0x00050026, 0x00050061];
/** Offsets in `struct seccomp_data`. */
const [NUMBER, ARCHITECTURE] = [0, 4];
/** The lower half of an argument, the first is 0. */
const argument = (position: number) => 16 + 8 * position;
/** The lowest number of a call of the x32 interface. */
const X32 = 0x40000000;

export function isFiltered(architecture: string): architecture is Architecture {
  return Object.hasOwn(DENIED, architecture);
}

/** A denied call fails with EPERM. A call of another interface (32 bits, x32) fails with ENOSYS. */
export function seccompFilter(architecture: Architecture): Buffer {
  const unless = (value: number, then: number) => [line(IF_EQUAL, value, 0, 1), line(RETURN, then)];
  const sockets = [
    line(LOAD, argument(0)),
    ...FAMILIES.flatMap((family) => unless(family, ALLOW)),
    line(RETURN, NO_FAMILY),
  ];
  const program = [
    line(LOAD, ARCHITECTURE),
    line(IF_EQUAL, AUDIT[architecture], 1, 0),
    line(RETURN, UNKNOWN),
    line(LOAD, NUMBER),
    line(IF_AT_LEAST, X32, 0, 1),
    line(RETURN, UNKNOWN),
    ...DENIED[architecture].flatMap((number) => unless(number, NOT_PERMITTED)),
    ...unless(OPENAT2, UNKNOWN),
    ...Object.entries(CALLS_WITH_MODE[architecture]).flatMap(([name, number]) => {
      const checks = modeChecks(SETS_MODE[name as SetsMode]);
      return [line(IF_EQUAL, number, 0, checks.length), ...checks];
    }),
    line(IF_EQUAL, SOCKET[architecture], 0, sockets.length),
    ...sockets,
    line(IF_EQUAL, IOCTL[architecture], 1, 0),
    line(RETURN, ALLOW),
    line(LOAD, argument(1)),
    ...DENIED_IOCTLS.flatMap((number) => unless(number, NOT_PERMITTED)),
    line(RETURN, ALLOW),
  ];
  return Buffer.concat(program);
}

/** What follows the number of a call that sets the mode of a file. */
function modeChecks({ mode, flags }: Positions): Buffer[] {
  const creates =
    flags === undefined
      ? []
      : [line(LOAD, argument(flags)), line(IF_ANY_BIT, CREATE | TEMPORARY, 1, 0), line(RETURN, ALLOW)];
  const refused = [line(LOAD, argument(mode)), line(IF_ANY_BIT, SETUID | SETGID, 0, 1), line(RETURN, NOT_PERMITTED)];
  return [...creates, ...refused, line(RETURN, ALLOW)];
}

/** `struct sock_filter`: the operation, how many lines to skip if the comparison holds and if not, the value. */
function line(code: number, value: number, ifSo = 0, ifNot = 0): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(ifSo, 2);
  bytes.writeUInt8(ifNot, 3);
  bytes.writeUInt32LE(value, 4);
  return bytes;
}
