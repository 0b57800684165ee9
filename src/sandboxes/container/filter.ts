import { randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CREATE, type Positions, SETGID, SETS_MODE, SETUID, TEMPORARY } from '../shared/isolated/modes.ts';

/*
 * The filter of system calls: podman's own list of allowed calls, without those that no agent needs. Podman allows namespaces and mounts, so
 * that containers can run in containers; with them an agent would reach much more of the kernel. Sockets of the kind "vsock" lead from a
 * virtual machine to its host, out of every network namespace. Docker gets the same filter where podman's list is installed.
 */

const DENIED = new Set([
  ...['add_key', 'request_key', 'keyctl'], // the keys of our user
  ...['mount', 'umount', 'umount2', 'pivot_root', 'open_tree', 'move_mount', 'mount_setattr'],
  ...['fsopen', 'fsconfig', 'fsmount', 'fspick', 'chroot', 'unshare', 'setns'],
  ...['perf_event_open', 'bpf', 'userfaultfd', 'io_uring_setup', 'io_uring_enter', 'io_uring_register'],
  ...['init_module', 'finit_module', 'delete_module', 'kexec_load', 'kexec_file_load'],
  ...['syslog', 'acct', 'swapon', 'swapoff', 'reboot', 'quotactl', 'open_by_handle_at', 'name_to_handle_at'],
]);
/** The families of sockets that are allowed: unix, IPv4 and IPv6. */
const FAMILIES = [1, 2, 10];
const [NETLINK, AUDIT] = [16, 9];
/** The flags of `clone` for new namespaces. */
const NAMESPACES = 0x7e020000;
const [NOT_PERMITTED, UNKNOWN] = [1, 38];

interface Rule {
  readonly names?: readonly string[];
  readonly action?: string;
}

/** Makes it from podman's profile. Null: the profile does not refuse all calls that it does not name. */
export function filterFrom(profile: string): string | null {
  const { defaultAction, syscalls, ...rest } = JSON.parse(profile) as { defaultAction?: string; syscalls?: Rule[] };
  if (defaultAction !== 'SCMP_ACT_ERRNO' || !Array.isArray(syscalls)) return null;
  const changed = ['clone', 'clone3', 'socket', 'socketcall', 'openat2', ...Object.keys(SETS_MODE)];
  const special = new Set([...DENIED, ...changed]);
  const kept = syscalls.flatMap((rule) => {
    const names = (rule.names ?? []).filter((name) => !special.has(name));
    return names.length === 0 ? [] : [{ ...rule, names }];
  });
  const added = [
    allow('clone', masked(0, NAMESPACES, 0)),
    // No filter sees their arguments, which are in memory. Programs then use the older call.
    refuse('clone3', UNKNOWN),
    refuse('openat2', UNKNOWN),
    ...Object.entries(SETS_MODE).flatMap(([name, positions]) => modeRules(name, positions)),
    refuse('socketcall', UNKNOWN),
    ...FAMILIES.map((family) => allow('socket', { index: 0, value: family, valueTwo: 0, op: 'SCMP_CMP_EQ' })),
    allow(
      'socket',
      { index: 0, value: NETLINK, valueTwo: 0, op: 'SCMP_CMP_EQ' },
      { index: 2, value: AUDIT, valueTwo: 0, op: 'SCMP_CMP_NE' },
    ),
    ...[...DENIED].map((name) => refuse(name, NOT_PERMITTED)),
  ];
  return JSON.stringify({ ...rest, defaultAction, syscalls: [...kept, ...added] });
}

/** The bits of an argument that are in the mask have this value. */
const masked = (index: number, mask: number, value: number) => ({
  index,
  value: mask,
  valueTwo: value,
  op: 'SCMP_CMP_MASKED_EQ',
});
const allow = (name: string, ...args: object[]) => ({ names: [name], action: 'SCMP_ACT_ALLOW', args });
const refuse = (name: string, errnoRet: number, ...args: object[]) => ({
  names: [name],
  action: 'SCMP_ACT_ERRNO',
  errnoRet,
  args,
});

/** What no rule names is answered as if the system had no such call: so those that refuse are needed, too. */
function modeRules(name: string, { mode, flags }: Positions): object[] {
  const creates = flags === undefined ? [[]] : [CREATE, TEMPORARY].map((flag) => [masked(flags, flag, flag)]);
  return [
    ...(flags === undefined ? [] : [allow(name, masked(flags, CREATE | TEMPORARY, 0))]),
    allow(name, masked(mode, SETUID | SETGID, 0)),
    ...creates.flatMap((when) =>
      [SETUID, SETGID].map((bit) => refuse(name, NOT_PERMITTED, ...when, masked(mode, bit, bit))),
    ),
  ];
}

/** The engine reads the file when a container starts. No agent can write there. */
export async function writtenFilter(folder: string, filter: string): Promise<string> {
  const path = join(folder, 'seccomp.json');
  const there = await readFile(path, 'utf8').catch(() => null);
  if (there === filter) return path;
  const next = `${path}.${randomUUID()}`;
  await writeFile(next, filter, { mode: 0o600 });
  await rename(next, path);
  return path;
}
