import { describe, expect, test } from 'vitest';
import type { Around } from './around.ts';

const refused = expect.objectContaining({ name: 'ThroughlineError', code: 'refused' });
const text = (read: { readonly bytes: Uint8Array } | null) => read && Buffer.from(read.bytes).toString();
const ALL = { most: 1_000_000 };
const PREPARE = 'mkdir secret && printf secret > secret/x';

/** Runs scripts as an agent that prepares the folder `own`, with a secret beside it. */
function attacking(around: () => Around) {
  const inState = (script: string) => around().run(`cd '${around().sandbox.state}' && ${script}`);
  return {
    folder: () => around().sandbox.folder(`${around().sandbox.state}/own`),
    attack: (script: string) => inState(`mkdir -p own/deep && ${script}`),
    secret: () => inState('cat secret/x && ls secret'),
  };
}

/** Whatever an agent prepares, nothing is read, written or removed outside of the folder. */
export function linksContract(around: () => Around): void {
  const { folder, attack, secret } = attacking(around);

  describe('links and special files', () => {
    test.each([
      ['the file itself', 'ln -s ../../secret/x own/deep/x', 'deep/x'],
      ['the file itself, absolute', 'ln -s "$PWD/secret/x" own/deep/x', 'deep/x'],
      ['its folder', 'ln -s ../../secret own/deep/link', 'deep/link/x'],
      ['the folder above', 'ln -s ../secret own/link && mkdir secret/deep && ln secret/x secret/deep/x', 'link/deep/x'],
      ['a link to another link', 'ln -s ../secret own/one && ln -s one own/two', 'two/x'],
      ['a link inside of the folder', 'mkdir own/real && ln secret/x own/real/x && ln -s real own/link', 'link/x'],
    ])('nothing goes through a link: %s', async (_, script, path) => {
      await attack(`${PREPARE} && ${script}`);
      const files = await folder();
      await expect(files.read(path, ALL)).rejects.toEqual(refused);
      await expect(files.put(path, 'mine')).rejects.toEqual(refused);
      // Another name may be written beside a link to a file, but not through a link to a folder.
      const beside = await files.put(`${path}2`, 'mine').catch((error) => error.code);
      expect(['written', 'refused']).toContain(beside);
      await expect(files.replace(path, 'mine')).rejects.toEqual(refused);
      await expect(files.append(path, 'mine')).rejects.toEqual(refused);
      await expect(files.list(path)).rejects.toEqual(refused);
      expect(await secret()).toMatch(/^secret(deep\n)?x\n$/);
    });

    test('a link itself is described and removed, not its target', async () => {
      await attack(`${PREPARE} && ln -s ../secret/x own/x && ln -s ../secret own/folder && ln -s nowhere own/broken`);
      const files = await folder();
      for (const name of ['x', 'folder', 'broken']) {
        expect(await files.stat(name)).toMatchObject({ kind: 'link' });
        expect(await files.list('')).toContainEqual({ name, kind: 'link' });
        await files.remove(name);
      }
      await expect(files.list('')).resolves.toEqual([{ name: 'deep', kind: 'folder' }]);
      expect(await secret()).toBe('secretx\n');
    });

    test('writing through a broken or circular link is refused, and creates nothing', async () => {
      await attack('ln -s ../made own/nowhere && ln -s circle own/circle');
      const files = await folder();
      for (const path of ['nowhere', 'nowhere/x', 'circle', 'circle/x']) {
        await expect(files.put(path, 'x')).rejects.toEqual(refused);
        await expect(files.replace(path, 'x')).rejects.toEqual(refused);
      }
      expect(await around().run(`ls '${around().sandbox.state}'`)).toBe('own\n');
    });

    test('a pipe does not block, and is neither read nor written', async () => {
      await attack('mkfifo own/pipe');
      const files = await folder();
      expect(await files.stat('pipe')).toMatchObject({ kind: 'other' });
      await expect(files.read('pipe', ALL)).rejects.toEqual(refused);
      await expect(files.append('pipe', 'x')).rejects.toEqual(refused);
      await expect(files.put('pipe', 'x')).rejects.toEqual(refused);
      await expect(files.replace('pipe', 'x')).rejects.toEqual(refused);
      await expect(files.read('deep', ALL)).rejects.toEqual(refused);
      await files.remove('pipe');
      expect(await files.stat('pipe')).toBeNull();
    });

    test('no path leads out of the folder', async () => {
      await attack(PREPARE);
      const files = await folder();
      for (const path of [
        '..',
        '../secret/x',
        'deep/../../secret/x',
        '/etc/passwd',
        './x',
        'a//b',
        'a/',
        'a/.',
        'a\0b',
      ]) {
        const tries = [
          files.stat(path),
          files.read(path, ALL),
          files.list(path),
          files.space(path),
          files.put(path, 'x'),
          files.replace(path, 'x'),
          files.append(path, 'x'),
          files.remove(path),
          files.watch(path, () => {}),
        ];
        for (const result of await Promise.allSettled(tries)) {
          expect(result, path).toMatchObject({ status: 'rejected', reason: { code: 'refused' } });
        }
      }
      expect(await secret()).toBe('secretx\n');
    });
  });
}

/** Needs a system on which an open folder can be used as a path. */
export function racesContract(around: () => Around): void {
  const { folder, attack, secret } = attacking(around);

  test('an agent that constantly swaps a folder for a link cannot make us read or write outside of the folder', async () => {
    await attack(`${PREPARE} && mkdir own/swap && printf own > own/swap/x`);
    const swap =
      'while [ ! -e stop ]; do mv own/swap own/aside; ln -s ../secret own/swap; rm own/swap; mv own/aside own/swap; done';
    const swapping = await around().start(`cd '${around().sandbox.state}' && ${swap}`);
    const files = await folder();
    const seen = new Set<string | null>();
    for (let i = 0; i < (around().given.rounds ?? 300); i += 1) {
      const results = await Promise.allSettled([
        files.read('swap/x', ALL),
        files.put(`swap/new-${i}`, 'x'),
        files.remove('swap/new-0'),
      ]);
      const [read] = results;
      if (read?.status === 'fulfilled') seen.add(text(read.value));
      for (const one of results) if (one.status === 'rejected') expect(one.reason).toEqual(refused);
      await new Promise(setImmediate);
    }
    await around().run(`touch '${around().sandbox.state}/stop'`);
    await swapping.exited;
    expect([...seen].filter((one) => one !== 'own' && one !== null)).toEqual([]);
    expect(await secret()).toBe('secretx\n');
  });
}
