// The life of a vendor's machine: it is created, rests, is woken, and may be lost.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, describe, expect, type TestContext, test } from 'vitest';
import { removeLeftOver } from '../../../src/engine/sandboxes/leave.ts';
import type { Machine, Vendor } from '../../../src/sandboxes/vendors/vendor.ts';
import { whyNoDoubles } from '../../vendors/double/service.ts';
import { textOf } from './around.ts';
import { sandboxesOf, VENDORS, VendorGiven } from './vendor-given.ts';

const why = whyNoDoubles();

describe.each(VENDORS)('machines of %s, with a double of its package', (kind) => {
  const given = why === null ? new VendorGiven(kind) : null;
  afterAll(() => given?.service.dispose());
  const givenOrSkip = (context: TestContext) => given ?? context.skip(why ?? '');

  test('a resting one keeps its files and runs nothing; to open it wakes it', async (context) => {
    const machines = givenOrSkip(context);
    const { service } = machines;
    const sandboxes = machines.sandboxes();
    const before = await sandboxes.open('rests', { cwd: null });
    await (await before.folder(before.state)).put('kept', 'yes');
    const child = await before.spawn(['/bin/sh', '-c', 'sleep 100000'], { env: {} });
    expect(await sandboxes.status(child.identity)).toBe('alive');
    await sandboxes.rest?.('rests');
    expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' });
    expect(await sandboxes.status(child.identity)).toBe('dead');
    expect(await sandboxes.end(child.identity)).toBe('ended');
    // These questions have not woken it.
    expect(service.all().map(({ id }) => service.state(id))).toEqual([null]);
    expect(await sandboxes.files('rests', { cwd: null, match: '' })).toEqual({ paths: [], more: true });

    // Both another process of ours and the one that had it open can use it.
    const other = await machines.sandboxes().open('rests', { cwd: null });
    for (const sandbox of [before, other]) {
      const read = await (await sandbox.folder(sandbox.state)).read('kept', { most: 100 });
      expect(Buffer.from(read?.bytes ?? '').toString()).toBe('yes');
    }
    // Another process may have its pid by now; that one is left alone.
    expect(await sandboxes.status(child.identity)).toBe('dead');
    const next = await other.spawn(['/bin/sh', '-c', 'echo again'], { env: {} });
    expect(await textOf(next.stdout)).toBe('again\n');
    await next.exited;
  });

  test('one that is put to rest is not woken by questions during that time', async (context) => {
    const { service } = givenOrSkip(context);
    const machines = () => service.all().filter(({ id, metadata }) => `${id} ${metadata.name}`.includes('-s-asked'));
    // This vendor ends the programs in a machine at once, and reports a moment later that the machine rests.
    let late: Machine | null = null;
    const around = (vendor: Vendor): Vendor => ({
      ...vendor,
      async find(name) {
        const found = late ?? (await vendor.find(name));
        const rest = async () => {
          late = found;
          await found?.rest();
          await delay(500);
          late = null;
        };
        return found && { ...found, rest };
      },
    });
    const sandboxes = sandboxesOf(kind, service.root, { around });
    const sandbox = await sandboxes.open('asked', { cwd: null });
    const child = await sandbox.spawn(['/bin/sh', '-c', 'sleep 100000'], { env: {} });
    await sandboxes.rest?.('asked');
    expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' });
    expect(machines().map(({ id }) => service.state(id))).toEqual([null]);
    expect(await sandboxes.status(child.identity)).toBe('dead');
    await sandboxes.remove('asked');
  });

  test('one that was lost is created again, empty; one that was removed is no longer found', async (context) => {
    const machines = givenOrSkip(context);
    const { service } = machines;
    const sandboxes = machines.sandboxes();
    const before = await sandboxes.open('goes', { cwd: null });
    await (await before.folder(before.state)).put('lost', 'yes');
    const [machine] = service.all().filter(({ id, metadata }) => `${id} ${metadata.name}`.includes('-s-goes'));
    await service.remove(machine?.id ?? '');
    expect(await sandboxes.find('goes')).toBeNull();
    const after = await sandboxes.open('goes', { cwd: null });
    expect(await (await after.folder(after.state)).list('')).toEqual([]);
    expect(await sandboxes.find('goes')).toMatch(/-s-goes$/);
    await sandboxes.remove('goes');
    expect(await sandboxes.find('goes')).toBeNull();
    await sandboxes.remove('goes');
  });

  test('one that no conversation uses is deleted, unless it has programs or unsaved work', async (context) => {
    const sandboxes = givenOrSkip(context).sandboxes();
    const looking = { signal: AbortSignal.timeout(600_000), monotonic: () => performance.now() };
    const remove = (check = async () => {}) => removeLeftOver(sandboxes, 'left', looking, check);
    const sandbox = await sandboxes.open('left', { cwd: null });
    const work = await sandbox.folder(sandbox.work);
    await work.put('file', 'x');
    await expect(remove()).rejects.toMatchObject({ code: 'refused', message: expect.stringContaining('file') });
    await work.remove('file');
    const child = await sandbox.spawn(['/bin/sh', '-c', 'echo started; sleep 100000'], { env: {} });
    for await (const _ of child.stdout) break;
    await expect(remove()).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('in use') });
    child.kill('SIGKILL');
    await child.exited;
    const taken = async () => Promise.reject(new Error('A conversation uses it now.'));
    await expect(remove(taken)).rejects.toThrow('uses it now');
    expect(await sandboxes.find('left')).not.toBeNull();
    await remove();
    expect(await sandboxes.find('left')).toBeNull();
    await remove();
  });

  test('refuse a directory of this machine, and report a wrong key', async (context) => {
    const sandboxes = givenOrSkip(context).sandboxes();
    const refused = expect.objectContaining({ code: 'refused' });
    await expect(sandboxes.open('one', { cwd: '/tmp' })).rejects.toEqual(refused);
    await expect(sandboxes.checkDirectory('/tmp')).rejects.toEqual(refused);
    const wrong = sandboxesOf(kind, '/no/such/key').open('one', { cwd: null });
    await expect(wrong).rejects.toMatchObject({ code: 'agent_unavailable', hint: expect.stringContaining('key') });
  });
});
