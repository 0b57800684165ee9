import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { containerSandboxes, whyNo, writeRootfs } from '../../../test/contracts/sandbox/container-given.ts';
import { call, isolationContract, SECRET, startingIn } from '../../../test/contracts/sandbox/isolation.contract.ts';
import { type EngineName, labelled } from './engine.ts';
import { identityOfContainer, labelOf } from './processes.ts';

const ENGINES = ['podman', 'docker'] as const;
const missing = (await Promise.all(ENGINES.map(whyNo))).map((why, at) => ({ engine: ENGINES[at] as EngineName, why }));
const STARTER = fileURLToPath(new URL('../../../test/contracts/sandbox/container-given.ts', import.meta.url));

/** Without root, control groups of version 1 limit nothing. */
function whyNoLimits(): string | null {
  const isVersion2 = existsSync('/sys/fs/cgroup/cgroup.controllers');
  return process.getuid?.() === 0 || isVersion2 ? null : 'without root, control groups of version 1 limit nothing';
}

test.for(missing.filter(({ why }) => why !== null))('an agent in a container of $engine', ({ why }, { skip }) =>
  skip(why ?? ''),
);

const found = missing.filter(({ why }) => why === null);
describe.for(found)('an agent in a container of $engine', ({ engine }) => {
  const starting = startingIn({
    project: 'pro,ject:"a"',
    sandboxes: ({ base }, settings, others) =>
      containerSandboxes(base, { ...settings, engine }, others?.fixed, others?.root),
    starter: ({ base }, words) => [process.execPath, STARTER, base, engine, ...words],
    whyNoLimits,
    ownProcesses: 1,
    writesToStderr: true,
  });
  const { start, sh } = starting;
  const { base, root, project } = starting.folders;
  writeRootfs(join(base, 'rootfs'));
  isolationContract(starting);

  test('reads and changes nothing outside, nor the settings that it is started with', async () => {
    await containerSandboxes(base, { network: 'none', engine }).open('neighbour', { cwd: null });
    const { out } = await sh(`
      for file in '${base}/elsewhere/secret' ../elsewhere/secret link '${root}/token' /etc/shadow /proc/kcore /proc/1/root/etc/shadow \\
        '${root}/one/seccomp.json' /proc/keys /proc/timer_list; do
        if grep -q . "$file" 2>/dev/null; then echo "read $file"; fi
      done
      for folder in '${root}/neighbour' '${base}/elsewhere' /etc/ssl/private /root /home /boot /var/lib /mnt /sys/firmware; do
        if ls -A "$folder" 2>/dev/null | grep -q .; then echo "listed $folder"; fi
      done
      for file in /dev/mem /dev/kmsg /dev/sda /dev/vda /dev/fuse /run/podman/podman.sock /var/run/docker.sock /run/secrets; do
        if [ -e "$file" ]; then echo "has $file"; fi
      done
      for file in /usr/x /etc/x /etc/passwd /bin/x '${process.execPath}' throughline.config.json /proc/sysrq-trigger \\
        /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /sys/kernel/uevent_helper /sys/fs/cgroup/pids/x ${engine === 'podman' ? '/run/podman-init' : '/sbin/docker-init'}; do
        if ( : >> "$file" ) 2>/dev/null; then echo "opened $file"; fi
      done
      rm -f throughline.config.json 2>/dev/null && echo removed
      mv throughline.config.json other 2>/dev/null && echo moved
      ( echo hidden > '${base}/x' ) 2>/dev/null
      echo mine > own && cat own`);
    expect(out).toBe('mine\n');
    expect(readFileSync(join(project, 'own'), 'utf8')).toBe('mine\n');
    expect(readFileSync(join(project, 'throughline.config.json'), 'utf8')).toBe('{}');
    expect(existsSync(join(base, 'x'))).toBe(false);
  });

  test('has the environment that it was given, no privileges, and no process outside', async () => {
    process.env.THROUGHLINE_TEST_SECRET = SECRET;
    process.env.HTTP_PROXY = `http://user:${SECRET}@example.org`;
    try {
      const { out } = await sh(
        `
        grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t' | tr '\\n' ' '; echo
        ${call(250, 219, '0, -3, 0')}; echo " keyctl"
        ${call(248, 217, '"user", "a", "b", 1, -3')}; echo " add_key"
        ${call(165, 40, '"none", "/tmp", "tmpfs", 0, 0')}; echo " mount"
        ${call(304, 265, '0, 0, 0')}; echo " open_by_handle_at"
        ${call(272, 97, '0x10000000')}; echo " user namespace"
        ${call(56, 220, '0x10000011, 0, 0, 0, 0')}; echo " clone"
        ${call(161, 51, '"/tmp"')}; echo " chroot"
        ${call(101, 117, `16, ${process.pid}, 0, 0`)}; echo " ptrace"
        kill -0 ${process.pid} 2>/dev/null && echo "sees ${process.pid}"
        mknod /tmp/disk b 8 0 2>/dev/null && echo mknod
        (: < /dev/tty) 2>/dev/null && echo terminal
        echo environment; env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'`,
        undefined,
        { env: { GIVEN: 'yes' } },
      );
      const none = '0000000000000000';
      const [status = '', ...calls] = out.slice(0, out.indexOf('environment\n')).trim().split('\n');
      expect(status.trim()).toBe(
        `CapInh:${none} CapPrm:${none} CapEff:${none} CapBnd:${none} CapAmb:${none} NoNewPrivs:1 Seccomp:2`,
      );
      const names = ['keyctl', 'add_key', 'mount', 'open_by_handle_at', 'user namespace', 'clone', 'chroot'];
      // For clone, only some flags are denied, with the default error of the filter.
      const denied = calls.map((line) =>
        line.replace('Function not implemented clone', 'Operation not permitted clone'),
      );
      expect(denied).toEqual([...names.map((name) => `Operation not permitted ${name}`), 'No such process ptrace']);
      expect(out).toContain('GIVEN=yes');
      expect(out).toContain(`HOME=${root}/one/home`);
      expect(out).not.toContain(SECRET);
      expect(out).not.toMatch(/TMPDIR|http_proxy=h/i);
    } finally {
      delete process.env.THROUGHLINE_TEST_SECRET;
      delete process.env.HTTP_PROXY;
    }
  });

  test('cannot affect the engine by its environment, and its keys are in no argument', async () => {
    const env = { LD_PRELOAD: join(project, 'evil.so'), CONTAINERS_CONF: join(project, 'evil.conf'), KEY: SECRET };
    const quoted = ` "it's" $(id) \`id\` \\ \n\n`;
    const agent = await start(['/bin/sh', '-c', 'read line; echo "$KEY"'], undefined, { env });
    const identity = identityOfContainer(agent.identity) ?? expect.unreachable('it is no container');
    const of = (name: string) => readFileSync(`/proc/${identity.client.pid}/${name}`, 'latin1');
    expect(of('cmdline')).toContain(engine);
    expect(of('cmdline') + of('environ')).not.toMatch(new RegExp(`LD_PRELOAD|evil|${SECRET}`));
    const [container = ''] = await labelled(engine, labelOf(identity));
    expect(execFileSync(engine, ['inspect', container], { encoding: 'utf8' })).not.toContain(SECRET);
    const chosen = (given: Record<string, string>, cwd?: string) =>
      sh('env; pwd', undefined, { env: given, partOf: agent.identity, ...(cwd !== undefined && { cwd }) });
    for (const given of [{ A: `a\0--privileged` }, { 'A=1;touch x;B': '' }])
      await expect(chosen(given)).rejects.toMatchObject({ code: 'agent_unavailable' });
    // Folders that the engine or runc have open, by their descriptors.
    await expect(chosen({}, '/proc/self/fd/7')).rejects.toMatchObject({ code: 'agent_unavailable' });
    const { out, code } = await chosen({ QUOTED: quoted, LD_LIBRARY_PATH: '/x' }, '/');
    expect([code, out]).toEqual([0, expect.stringContaining(`QUOTED=${quoted}\n`)]);
    expect(out.endsWith('\n/\n')).toBe(true);
  });
});
