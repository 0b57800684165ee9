import { describe, expect, test } from 'vitest';
import type { Folder } from '../../../src/ports/sandbox.ts';
import { until } from '../agent-sandbox.ts';
import type { Around } from './around.ts';

const refused = expect.objectContaining({ name: 'ThroughlineError', code: 'refused' });
const text = (read: { readonly bytes: Uint8Array } | null) => read && Buffer.from(read.bytes).toString();
const ALL = { most: 1_000_000 };

export function filesContract(around: () => Around): void {
  const folder = () => around().sandbox.folder(around().sandbox.state);
  /** Runs a script as an agent, in its state directory. */
  const inState = (script: string) => around().run(`cd '${around().sandbox.state}' && ${script}`);

  describe('files', () => {
    test('files can be read and listed by us and by agents, and those that we put are private', async () => {
      const files = await folder();
      expect(await files.put('a/b/c.txt', 'hello')).toBe('written');
      expect(await inState('cat a/b/c.txt; stat -c %a a/b a/b/c.txt')).toBe('hello700\n600\n');
      await inState('printf agent > a/d.txt');
      expect(text(await files.read('a/d.txt', ALL))).toBe('agent');
      expect(new Set(await files.list('a'))).toEqual(
        new Set([
          { name: 'b', kind: 'folder' },
          { name: 'd.txt', kind: 'file' },
        ]),
      );
    });

    test('a folder is created when something is put into it', async () => {
      const files = await around().sandbox.folder(`${around().sandbox.state}/not/yet`);
      expect([await files.stat(''), await files.list(''), await files.space('')]).toEqual([null, null, null]);
      expect(await files.put('x', '1')).toBe('written');
      expect(await files.space('')).toMatchObject({ writable: true });
      expect(await inState('cat not/yet/x')).toBe('1');
    });

    test('links in the path of the folder itself are followed', async () => {
      await inState('mkdir real && ln -s real named && printf there > real/x');
      const files = await around().sandbox.folder(`${around().sandbox.state}/named`);
      expect(files.path).toBe(`${await around().sandbox.realPath(around().sandbox.state)}/real`);
      expect(text(await files.read('x', ALL))).toBe('there');
    });

    test('for a missing file, reading gives null, appending gives false, and removing does nothing', async () => {
      const files = await folder();
      await files.put('file', 'x');
      for (const path of ['none', 'none/deep', 'file/below']) {
        expect([await files.stat(path), await files.read(path, ALL), await files.list(path)]).toEqual([
          null,
          null,
          null,
        ]);
        expect(await files.append(path, 'x')).toBe(false);
      }
      await files.remove('none');
      await files.remove('none/deep');
    });

    test('a range of a file can be read, and never more than that', async () => {
      const files = await folder();
      await files.put('x', '0123456789');
      const part = async (from: number, most: number) => text(await files.read('x', { from, most }));
      expect(await part(0, 3)).toBe('012');
      expect(await part(7, 100)).toBe('789');
      expect(await part(10, 5)).toBe('');
      expect(await part(99, 5)).toBe('');
      expect(await part(0, 0)).toBe('');
      expect((await files.read('x', { most: 3 }))?.size).toBe(10);
    });

    test('a long file is read completely', async () => {
      const files = await folder();
      const content = Buffer.alloc(5_000_001, 'abcdefg');
      expect(await files.put('long', content)).toBe('written');
      const read = await files.read('long', { most: 10_000_000 });
      expect(content.equals(read?.bytes ?? Buffer.alloc(0))).toBe(true);
    });

    test('the version changes with the content', async () => {
      const files = await folder();
      await files.put('x', 'one');
      const before = await files.stat('x');
      expect(before).toMatchObject({ kind: 'file', size: 3 });
      expect(await files.read('x', ALL)).toMatchObject({ version: before?.version, id: before?.id });
      expect(Math.abs((before?.modifiedAt ?? 0) - Date.now())).toBeLessThan(600_000);
      await files.append('x', '!');
      expect((await files.stat('x'))?.version).not.toBe(before?.version);
    });
  });

  describe('writing', () => {
    test('put changes no file that exists', async () => {
      const files = await folder();
      await files.put('x', 'one');
      expect(await files.put('x', 'one')).toBe('same');
      expect(await files.put('x', 'two')).toBe('exists');
      expect(await files.put('x', 'one and more')).toBe('exists');
      expect(text(await files.read('x', ALL))).toBe('one');
      expect(await files.list('')).toEqual([{ name: 'x', kind: 'file' }]);
    });

    test('when many put the same file at once, exactly one writes it', async () => {
      const [one, other] = await Promise.all([folder(), around().given.sandboxes().open('one', { cwd: null })]);
      const writers = [one, await other.folder(other.state)];
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, i) => (writers[i % 2] as Folder).put('deep/x', `writer ${i}`)),
      );
      const winner = results.indexOf('written');
      expect(results.filter((result) => result === 'written')).toHaveLength(1);
      expect(results.filter((result) => result === 'exists')).toHaveLength(19);
      expect(text(await one.read('deep/x', ALL))).toBe(`writer ${winner}`);
      expect(await one.list('deep')).toEqual([{ name: 'x', kind: 'file' }]);
    });

    test('replacing keeps the permissions, and readers see one content or the other', async () => {
      const files = await folder();
      await inState('printf old > tool && chmod 755 tool');
      await files.replace('tool', 'new');
      await files.replace('made/new', 'n', { mode: 0o640 });
      expect(await inState('cat tool made/new; stat -c %a tool made/new')).toBe('newn755\n640\n');
      const contents = ['a'.repeat(200_000), 'b'.repeat(100_000)];
      await files.replace('x', contents[0] as string);
      let over = false;
      const writing = (async () => {
        for (let i = 0; i < 40; i += 1) await files.replace('x', contents[i % 2] as string);
        over = true;
      })();
      while (!over) {
        expect(contents).toContain(text(await files.read('x', ALL)));
        await new Promise(setImmediate);
      }
      await writing;
    });

    test('appending adds to the end, and removing removes a file only', async () => {
      const files = await folder();
      await files.put('x', 'one\n');
      expect(await files.append('x', 'two\n')).toBe(true);
      expect(await inState('cat x')).toBe('one\ntwo\n');
      await files.remove('x');
      expect(await files.stat('x')).toBeNull();
      await files.put('folder/x', '');
      await expect(files.remove('folder')).rejects.toEqual(refused);
      expect(await files.stat('folder/x')).toMatchObject({ kind: 'file', size: 0 });
    });
  });

  watchContract(around);
}

function watchContract(around: () => Around): void {
  const inState = (script: string) => around().run(`cd '${around().sandbox.state}' && ${script}`);

  test('a watcher of a file is notified when it appears, grows, is replaced or removed, until it stops', async () => {
    const files = await around().sandbox.folder(around().sandbox.state);
    let told = 0;
    const watch = await files.watch('folder/x', () => {
      told += 1;
    });
    for (const change of [
      'mkdir folder && printf 1 > folder/x',
      'printf 2 >> folder/x',
      'printf 3 > y && mv y folder/x',
      'rm folder/x',
    ]) {
      const before = told;
      await inState(change);
      await until(`"${change}" was told`, () => told > before);
    }
    watch.stop();
    const before = told;
    const again = await files.watch('other', () => {
      told += 100;
    });
    await inState('printf 4 > folder/x && printf 5 > other');
    await until('the other was told', () => told >= before + 100);
    expect(told % 100).toBe(before);
    again.stop();
  });
}
