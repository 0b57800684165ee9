import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Diff, diffOfPatch, diffOfTexts, type Row } from './model.ts';

/** `28 28   text`, `29    - text`, `    29 + text`, `~ 14 lines`, with the changed words in brackets. */
function drawn({ rows }: Diff): string[] {
  return rows.map((row) => {
    if (row.kind === 'fold') return `~ ${row.count}${row.rows === null ? ' unknown' : ''}`;
    if (row.kind === 'note') return `\\ ${row.text}`;
    const sign = { same: ' ', added: '+', removed: '-' }[row.kind];
    let text = row.text;
    for (const { from, to } of row.changed.toReversed())
      text = `${text.slice(0, from)}[${text.slice(from, to)}]${text.slice(to)}`;
    return `${row.old ?? ''} ${row.now ?? ''} ${sign}${text}`;
  });
}

const whole = (oldText: string | null, newText: string) => diffOfTexts([{ oldText, newText, lines: [1, 1] }]);
const numbered = (count: number, from = 1) => Array.from({ length: count }, (_, n) => `line ${n + from}`).join('\n');

describe('a diff of texts', () => {
  test('counts only the lines that changed, also if others are between them', () => {
    const before = 'a\none = 1;\nb\nc\nd\ntwo = 2;\ne\n';
    const diff = whole(before, before.replace('1', '10').replace('2', '20'));
    expect(diff).toMatchObject({ added: 2, removed: 2 });
    expect(drawn(diff)).toEqual([
      ...['1 1  a', '2  -one = [1];', ' 2 +one = [10];', '3 3  b', '4 4  c', '5 5  d'],
      ...['6  -two = [2];', ' 6 +two = [20];', '7 7  e'],
    ]);
  });

  test('folds what is far from a change, and keeps it to be opened', () => {
    const before = numbered(30);
    const diff = whole(before, before.replace('line 15\n', ''));
    expect(drawn(diff)).toEqual([
      ...['~ 11', '12 12  line 12', '13 13  line 13', '14 14  line 14', '15  -line 15'],
      ...['16 15  line 16', '17 16  line 17', '18 17  line 18', '~ 12'],
    ]);
    expect(diff.rows[0]).toMatchObject({ rows: expect.arrayContaining([expect.objectContaining({ text: 'line 1' })]) });
  });

  test.each<[string, string | null, string, string[]]>([
    ['a new file', null, 'a\nb\n', [' 1 +a', ' 2 +b']],
    ['an empty new file', null, '', []],
    ['a file that was emptied', 'a\n', '', ['1  -a']],
    ['nothing that changed', 'a\nb', 'a\nb', ['1 1  a', '2 2  b']],
    ['a line end that went', 'a\n', 'a', ['1 1  a', '\\ New file: No line end at the end of the file.']],
    ['line ends of Windows', 'a\r\nb\r\n', 'a\r\nc\r\n', ['1 1  a', '2  -b', ' 2 +c']],
    ['line ends that become those of Unix', 'a\r\n', 'a\n', ['1  -a[\r]', ' 1 +a']],
    ['another line', 'return x;', 'throw new Error(y)', ['1  -return x;', ' 1 +throw new Error(y)']],
  ])('of %s', (_, before, after, rows) => {
    expect(drawn(whole(before, after))).toEqual(rows);
  });

  test('of several places of a file has the lines between them folded', () => {
    const diff = diffOfTexts([
      { oldText: 'a\nb', newText: 'a\nB', lines: [28, 28] },
      { oldText: 'c', newText: 'c2\nc3', lines: [45, 45] },
    ]);
    expect(drawn(diff)).toEqual(['28 28  a', '29  -b', ' 29 +B', '~ 15 unknown', '45  -c', ' 45 +c2', ' 46 +c3']);
    expect(diff).toMatchObject({ added: 3, removed: 2 });
  });

  test('has no numbers where the place is not known', () => {
    const one = { oldText: 'a\nb', newText: 'a\nc', lines: null };
    const rows = ['   a', '  -b', '  +c'];
    expect(drawn(diffOfTexts([one, one]))).toEqual([...rows, '\\ Elsewhere in the file:', ...rows]);
  });

  test('of very different large files does not take seconds', () => {
    const diff = whole(numbered(20_000), numbered(20_000, 50_000));
    expect(diff).toMatchObject({ added: 20_000, removed: 20_000 });
  });

  test('leads from the old lines to the new ones, and counts what it has', () => {
    const lines = fc.array(fc.constantFrom('a', 'b', 'c', '', 'd e f', 'd e g'), { maxLength: 30 });
    fc.assert(
      fc.property(lines, lines, (old, now) => {
        const [before, after] = [old, now].map((all) => all.map((line) => `${line}\n`).join(''));
        const diff = whole(before as string, after as string);
        const all = diff.rows.flatMap((row): readonly Row[] => (row.kind === 'fold' ? (row.rows ?? []) : [row]));
        const side = (kind: string) =>
          all.filter((row) => row.kind === kind || row.kind === 'same').map((row) => 'text' in row && row.text);
        expect([side('removed'), side('added')]).toEqual([old, now]);
        expect(diff.added).toBe(all.filter(({ kind }) => kind === 'added').length);
      }),
    );
  });
});

describe('a diff of a patch', () => {
  const HEADER = 'diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n';

  test('has the numbers of both files, and what is between its places folded', () => {
    const patch = `${HEADER}@@ -10,3 +10,3 @@ function f() {\n a\n-b = 1\n+b = 2\n c\n@@ -30 +30,2 @@\n d\n+e\n`;
    const diff = diffOfPatch(patch);
    expect(drawn(diff)).toEqual([
      ...['10 10  a', '11  -b = [1]', ' 11 +b = [2]', '12 12  c', '~ 17 unknown', '30 30  d', ' 31 +e'],
    ]);
    expect(diff).toMatchObject({ added: 2, removed: 1 });
  });

  test('takes lines that look like headers for what they are', () => {
    const patch = `${HEADER}@@ -1,2 +1,2 @@\n--- a/y\n-@@ -1 +1 @@\n+++ b/y\n+@@ -9 +9 @@\n\\ No newline at end of file\n`;
    expect(drawn(diffOfPatch(patch))).toEqual([
      ...['1  --- a/y', '2  -@@ -[1] +[1] @@', ' 1 +++ b/y', ' 2 +@@ -[9] +[9] @@'],
      '\\ No line end at the end of the file.',
    ]);
  });

  test('of nothing is empty', () => {
    expect(diffOfPatch('diff --git a/x b/x\nnew file mode 100644\n')).toEqual({ rows: [], added: 0, removed: 0 });
  });
});
