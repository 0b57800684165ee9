import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isolatedSandboxes, whyNoBubblewrap } from '../../../test/contracts/sandbox/bubblewrap-given.ts';
import {
  call,
  type Isolating,
  isolationContract,
  SECRET,
  startingIn,
} from '../../../test/contracts/sandbox/isolation.contract.ts';
import { identityOfLocal } from '../../core/process.ts';

const why = whyNoBubblewrap();
const isRoot = process.getuid?.() === 0;
const NEEDS_ROOT = 'limits for all processes together need root, or a group that was delegated';
const STARTER = fileURLToPath(new URL('../../../test/contracts/sandbox/bubblewrap-given.ts', import.meta.url));

if (why !== null) test('an agent in bubblewrap', (context) => context.skip(why));

describe.for(why === null ? ['bubblewrap'] : [])('an agent in %s', () => {
  const starting = startingIn({
    project: 'project',
    sandboxes: ({ root }, settings, others) => isolatedSandboxes(others?.root ?? root, settings, others?.fixed),
    starter: ({ root }, words) => [process.execPath, STARTER, root, ...words],
    whyNoLimits: () => (isRoot ? null : NEEDS_ROOT),
    ownProcesses: 2,
  });
  const { open, startIn, start, run, sh } = starting;
  const { base, root, project } = starting.folders;
  isolationContract(starting);

  test('reads nothing outside: by path, with .., by link, of the system, of our process or of another sandbox', async () => {
    await isolatedSandboxes(root, { network: 'none' }).open('neighbour', { cwd: null });
    const { out } = await sh(`
      for file in '${base}/elsewhere/secret' ../elsewhere/secret link '${root}/token' /etc/shadow /proc/kcore /proc/1/root/etc/shadow; do
        if cat "$file" >/dev/null 2>&1; then echo "read $file"; fi
      done
      for folder in '${root}/neighbour' '${base}/elsewhere' /etc/ssl/private /root /home /sys /boot /var/lib /var/run /mnt; do
        if ls -A "$folder" 2>/dev/null | grep -q .; then echo "listed $folder"; fi
      done
      for file in /dev/mem /dev/kmsg /dev/sda /dev/vda /dev/fuse; do if [ -e "$file" ]; then echo "has $file"; fi; done
      echo done`);
    expect(out).toBe('done\n');
  });

  test('changes nothing outside, nor the settings that it is started with', async () => {
    const { out } = await sh(`
      for file in /usr/x /etc/x /etc/passwd /bin/x '${process.execPath}' throughline.config.json /proc/sysrq-trigger \\
        /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname; do
        if ( : >> "$file" ) 2>/dev/null; then echo "opened $file"; fi
      done
      rm -f throughline.config.json 2>/dev/null && echo removed
      mv throughline.config.json other 2>/dev/null && echo moved
      echo hidden > '${base}/x'
      echo mine > own && cat own`);
    expect(out).toBe('mine\n');
    expect(readFileSync(join(project, 'throughline.config.json'), 'utf8')).toBe('{}');
    expect(() => readFileSync(join(base, 'x'))).toThrow('ENOENT');
  });

  test('gets nothing by replacing the working directory of another conversation with a link', async () => {
    symlinkSync(join(base, 'elsewhere'), join(project, 'nested'));
    await expect(open(undefined, join(project, 'nested'))).rejects.toMatchObject({ code: 'refused' });
  });

  test('gets nothing bound by replacing an argument of its own command with a link', async () => {
    const secret = join(base, 'elsewhere/secret');
    const { out } = await run(['/bin/sh', join(project, 'link')]);
    expect(out).toBe('');
    const agent = join(project, 'agent.sh');
    writeFileSync(agent, `cat '${secret}' || echo no`, { mode: 0o700 });
    expect((await run(['/bin/sh', agent])).out).toBe('no\n');
    writeFileSync(agent, `#!/bin/sh\ncat '${secret}' || echo no`, { mode: 0o700 });
    expect((await run([agent, join(project, 'link')])).out).toBe('no\n');
  });

  test('has only the environment that it was given, and sees no other through the processes in /proc', async () => {
    process.env.THROUGHLINE_TEST_SECRET = SECRET;
    try {
      const { out } = await sh(`env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'`, undefined, {
        env: { GIVEN: 'yes' },
      });
      expect(out).toContain('GIVEN=yes');
      expect(out).toContain(`HOME=${root}/one/home`);
      expect(out).not.toContain(SECRET);
      expect(out).not.toContain('TMPDIR');
    } finally {
      delete process.env.THROUGHLINE_TEST_SECRET;
    }
  });

  test('cannot affect programs outside by its environment, and its keys are in no argument', async () => {
    const env = { LD_PRELOAD: join(project, 'evil.so'), PATH: '/usr/bin:/bin', KEY: SECRET };
    const child = await start(['/bin/sh', '-c', 'read line'], undefined, { env });
    const of = (name: string) => readFileSync(`/proc/${identityOfLocal(child.identity)?.pid}/${name}`, 'latin1');
    expect(of('cmdline')).toContain('bwrap');
    expect(of('cmdline') + of('environ')).not.toMatch(new RegExp(`LD_PRELOAD|${SECRET}`));
  });

  test('sees and signals no process outside', async () => {
    const outside = spawn('/bin/sh', ['-c', 'read line']);
    onTestFinished(() => void outside.kill('SIGKILL'));
    const ended = once(outside, 'exit');
    const { out } = await sh(`
      for pid in ${process.pid} ${outside.pid}; do kill -0 "$pid" 2>/dev/null && echo "sees $pid"; done
      kill -KILL ${outside.pid} 2>/dev/null
      for pid in /proc/[0-9]*; do echo "\${pid##*/}"; done | wc -l
      ${call(101, 117, `16, ${process.pid}, 0, 0`)}; echo`);
    expect(out).not.toContain('sees');
    const [count = '', ptrace] = out.split('\n');
    expect(Number(count)).toBeLessThan(8);
    expect(ptrace).toBe('No such process');
    // It ends by itself when its input ends, and by no signal before.
    outside.stdin.end();
    expect(await ended).toEqual([1, null]);
  });

  test('has no privileges, and cannot get any', async () => {
    const { out } = await sh(`
      grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t' | tr '\\n' ' '; echo
      ${call(250, 219, '0, -3, 0')}; echo " keyctl"
      ${call(248, 217, '"user", "a", "b", 1, -3')}; echo " add_key"
      ${call(165, 40, '"none", "/tmp", "tmpfs", 0, 0')}; echo " mount"
      ${call(304, 265, '0, 0, 0')}; echo " open_by_handle_at"
      ${call(467, 467, '-100, "/tmp", 0, 0, 0')}; echo " open_tree_attr"
      ${call(443, 443, '0, 0, 0, 0')}; echo " quotactl_fd"
      ${call(272, 97, '0x10000000')}; echo " user namespace"
      ${call(161, 51, '"/tmp"')}; echo " chroot"
      ${call(16, 29, '0, 0x5412, "x"')}; echo " TIOCSTI"
      mknod /tmp/disk b 8 0 2>/dev/null && echo mknod
      (: < /dev/tty) 2>/dev/null && echo terminal
      exit 0`);
    const none = '0000000000000000';
    const [status = '', ...calls] = out.trim().split('\n');
    expect(status.trim()).toBe(
      `CapInh:${none} CapPrm:${none} CapEff:${none} CapBnd:${none} CapAmb:${none} NoNewPrivs:1 Seccomp:2`,
    );
    const newer = ['open_tree_attr', 'quotactl_fd'];
    const names = ['keyctl', 'add_key', 'mount', 'open_by_handle_at', ...newer, 'user namespace', 'chroot', 'TIOCSTI'];
    for (const [at, name] of names.entries()) {
      expect(calls[at]).toMatch(new RegExp(`^(Operation not permitted|No space left on device) ${name}$`));
    }
    expect(calls).toHaveLength(names.length);
  });

  test('gets nothing bound for a command that it has chosen itself', async () => {
    const agent = await start(['/bin/sh', '-c', 'read line']);
    const secret = join(base, 'elsewhere/secret');
    await expect(run([secret], undefined, { partOf: agent.identity })).rejects.toMatchObject({
      code: 'agent_unavailable',
      message: `The program ${secret} was not found in the sandbox.`,
    });
    expect((await run(['cat', secret], undefined, { partOf: agent.identity })).code).not.toBe(0);
  });

  test('cannot affect bubblewrap or our process by the environment of its own commands', async () => {
    const agent = await start(['/bin/sh', '-c', 'read line']);
    const given: Isolating = { network: 'model', allow: ['example.org'] };
    const chosen = (env: Record<string, string>) => sh('env', given, { env, partOf: agent.identity });
    for (const env of [{ A: `a\0--bind\0${base}\0${base}` }, { 'A=1;touch x;B': '' }])
      await expect(chosen(env)).rejects.toMatchObject({ code: 'agent_unavailable' });
    // On the channel to us, this would end our process.
    const evil = join(project, 'evil.js');
    writeFileSync(evil, `try { require('fs').writeSync(3, 'nothing of Node\\n') } catch {}; process.send?.('a word')`);
    const quoted = ` "it's" $(id) \`id\` \\ \n`;
    const { out, code } = await chosen({ NODE_OPTIONS: `--require ${evil}`, QUOTED: quoted, PATH: '/usr/bin' });
    expect(code).toBe(0);
    expect(out).toContain(`QUOTED=${quoted}\n`);
    expect(out).toContain(`NODE_OPTIONS=--require ${evil}\n`);
    expect(out).toContain('PATH=/usr/bin\n');
  });

  test('shares its limits with the commands that it makes us start', async (context) => {
    if (!isRoot) context.skip(NEEDS_ROOT);
    const sandbox = await open({ network: 'none', limits: { processes: 80 } });
    const waiting = ['/bin/sh', '-c', 'read line'];
    const agent = await startIn(sandbox, waiting);
    const command = await startIn(sandbox, waiting, { partOf: agent.identity });
    const other = await startIn(sandbox, waiting);
    const [of, ofCommand, ofOther] = [agent, command, other].map(({ identity }) =>
      readFileSync(`/proc/${identityOfLocal(identity)?.pid}/cgroup`, 'utf8'),
    );
    expect(of).toContain('throughline-');
    expect(ofCommand).toBe(of);
    expect(ofOther).not.toBe(of);
  });
});
