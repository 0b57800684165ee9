// What apt can do in a container whose root is a Debian that debootstrap has made.
import { execFile } from 'node:child_process';
import { lstatSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { textOf } from '../../../test/contracts/sandbox/around.ts';
import { containerSandboxes, whyNoPodman } from '../../../test/contracts/sandbox/container-given.ts';

const MAKE_MS = 300_000;

/** Null: it is made. Otherwise why it cannot be made here. */
async function whyNoDebian(folder: string): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'debootstrap needs root';
  const options = { timeout: MAKE_MS, env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin`, LC_ALL: 'C' } };
  return promisify(execFile)('debootstrap', ['--variant=minbase', 'stable', folder], options).then(
    () => null,
    ({ code, stdout = '' }: { code?: unknown; stdout?: string }) => {
      if (code === 'ENOENT') return 'debootstrap is not installed ("apt-get install debootstrap")';
      return `debootstrap cannot make a Debian here: ${stdout.trim().split('\n').at(-1) ?? 'it has ended'}`;
    },
  );
}

/** With lists and an archive of its own, because those of the system are read-only. */
const APT = `apt() { apt-get -qq -o Dir::State::lists="$PWD/lists" -o Dir::Cache="$PWD" -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"; }
mkdir -p lists/partial archives/partial tree
apt update >&2; apt download openssh-client >&2
dpkg-deb --contents openssh-client*.deb | grep -o '^-rws.*ssh-keysign' | cut -c 1-10`;
const UNPACK = 'dpkg-deb --fsys-tarfile openssh-client*.deb | tar -x --no-same-permissions -C tree && echo unpacked';
const INSTALL =
  'touch /usr/bin/ssh 2>&1; apt-get -qq install ./openssh-client*.deb >/dev/null 2>&1 || echo not installed';

test('apt unpacks a package without its setuid programs, and installs none: the system is read-only', {
  timeout: 2 * MAKE_MS,
}, async (context) => {
  const why = await whyNoPodman();
  if (why !== null) context.skip(why);
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-debian-')));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const [rootfs, project] = [join(base, 'debian'), join(base, 'project')];
  mkdirSync(project);
  const whyNot = await whyNoDebian(rootfs);
  if (whyNot !== null) context.skip(whyNot);

  const sandbox = await containerSandboxes(base, { rootfs, network: 'all' }).open('one', { cwd: project });
  const child = await sandbox.spawn(['/bin/sh', '-c', [APT, UNPACK, INSTALL].join('\n')], { env: {} });
  child.stdin.end();
  const [out, said] = await Promise.all([textOf(child.stdout), textOf(child.stderr), child.exited]);
  expect(out, said).toBe(
    "-rwsr-xr-x\nunpacked\ntouch: cannot touch '/usr/bin/ssh': Read-only file system\nnot installed\n",
  );
  expect(lstatSync(join(project, 'tree/usr/lib/openssh/ssh-keysign')).mode & 0o7777).toBe(0o755);
});
