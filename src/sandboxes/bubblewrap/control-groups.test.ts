import { expect, test } from 'vitest';
import { controllerAt, limitFiles, makeControlGroup } from './control-groups.ts';
import { checkBubblewrap, type Machine } from './probe.ts';

const V1 = `25 20 0:23 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
26 20 0:24 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
27 20 0:25 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw`;
const V2 = '30 20 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate';

test.each([
  ['a controller of version 1', 'pids', '8:pids:/a/b\n0::/', V1, { version: 1, folder: '/sys/fs/cgroup/pids/a/b' }],
  ['in a container', 'memory', '4:memory:/docker/abc/x\n0::/', V1, { version: 1, folder: '/sys/fs/cgroup/memory/x' }],
  ['at its root', 'memory', '4:memory:/docker/abc\n0::/', V1, { version: 1, folder: '/sys/fs/cgroup/memory' }],
  ['version 2: beside our own', 'memory', '0::/u.slice/a.scope', V2, { version: 2, folder: '/sys/fs/cgroup/u.slice' }],
  ['version 2: at the root', 'pids', '0::/', V2, { version: 2, folder: '/sys/fs/cgroup' }],
  ['none', 'pids', '', '', null],
] as const)('%s: where groups are made', (_, controller, cgroup, mountinfo, expected) => {
  expect(controllerAt(controller, cgroup, mountinfo)).toEqual(expected);
});

test('the limits of a group are written into its files', () => {
  expect(limitFiles(1, 'memory', { memoryMb: 2 })).toEqual([['memory.limit_in_bytes', '2097152']]);
  expect(limitFiles(2, 'memory', { memoryMb: 2 })).toEqual([['memory.max', '2097152']]);
  expect(limitFiles(2, 'pids', { processes: 70 })).toEqual([['pids.max', '70']]);
  expect(limitFiles(1, 'pids', { memoryMb: 2 })).toEqual([]);
});

test('without a limit no group is created', () => {
  const self = { pid: 1, started: '1', boot: '', namespace: '' };
  expect(makeControlGroup({}, { self, identify: () => null })).toBeNull();
});

const machine = (answers: Partial<Machine>): Machine => ({
  platform: 'linux',
  arch: 'x64',
  run: async () => 'bubblewrap 0.8.0',
  ...answers,
});
const fails = (error: object) => async () => {
  throw Object.assign(new Error('failed'), error);
};

test.each([
  ['another system', machine({ platform: 'darwin' }), /needs Linux/, /directory/],
  ['another processor', machine({ arch: 's390x' }), /not filtered on s390x/, /x64 or arm64/],
  ['not installed', machine({ run: fails({ code: 'ENOENT' }) }), /not installed/, /apt install bubblewrap/],
  ['too old', machine({ run: async () => 'bubblewrap 0.4.1' }), /0\.4 is too old/, /0\.8 or newer/],
  [
    'namespaces forbidden',
    machine({
      run: async (_, [first]) => {
        if (first === '--version') return 'bubblewrap 0.11.0';
        throw Object.assign(new Error('failed'), { stderr: 'bwrap: setting up uid map: Permission denied\n' });
      },
    }),
    /kernel does not allow it \(bwrap: setting up uid map: Permission denied\)/,
    /unprivileged_userns_clone/,
  ],
])('%s: refused with the reason and what to do', async (_, here, message, hint) => {
  await expect(checkBubblewrap(here)).rejects.toMatchObject({
    code: 'refused',
    message: expect.stringMatching(message),
    hint: expect.stringMatching(hint),
  });
});

test('a machine that has everything is accepted', async () => {
  await checkBubblewrap(machine({}));
});
