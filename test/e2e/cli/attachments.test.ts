import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { PROGRAM } from '../../program.ts';
import { CliHome, until } from './process.ts';
import { inTerminal } from './terminal.ts';

const home = new CliHome();
afterAll(() => home.remove());

const at = (name: string) => join(home.path, name);
const uriOf = (name: string) => pathToFileURL(at(name)).href;
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
writeFileSync(at('notes.md'), '# Notes\nThe codeword is osprey\n');
writeFileSync(at('pixel.dat'), PNG);
writeFileSync(at('program'), Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2]));
writeFileSync(at('latin1.txt'), Buffer.from([0x66, 0xfc, 0x72]));
writeFileSync(at('large.log'), 'x'.repeat(8 * 1_048_576 + 1));
writeFileSync(at('half.log'), 'x'.repeat(5 * 1_048_576));
mkdirSync(at('folder'));

async function promptOf(key: string) {
  return (await home.show(key)).turns[0].prompt;
}

describe('throughline send with files', () => {
  test('attaches text files and images in their order, before the words', async () => {
    const reply = await home.ok(
      ...['send', 'both', 'Which codewords', 'have you seen?'],
      ...['--image', 'pixel.dat', '--file', 'notes.md', '--file', 'pixel.dat'],
    );
    expect(reply).toContain('osprey');
    const image = { type: 'image', mimeType: 'image/png', data: PNG.toString('base64'), uri: uriOf('pixel.dat') };
    expect(await promptOf('both')).toEqual([
      { type: 'resource', resource: { uri: uriOf('notes.md'), text: '# Notes\nThe codeword is osprey\n' } },
      image,
      image,
      { type: 'text', text: 'Which codewords have you seen?' },
    ]);
    expect((await home.show('both')).conversation.title).toBe('Which codewords have you seen?');
  });

  test('attaches stdin for --file -, and takes the words from the arguments', async () => {
    const args = ['send', 'diff', 'Is this right?', '--file', '-'];
    expect((await home.start(args, { input: '+ a line\n' }).ended).code).toBe(0);
    expect(await promptOf('diff')).toEqual([
      { type: 'resource', resource: { uri: 'stdin:', text: '+ a line\n' } },
      { type: 'text', text: 'Is this right?' },
    ]);
  });

  test('sends files without words, and files with words from stdin', async () => {
    await home.ok('send', 'alone', '--image', 'pixel.dat');
    expect(await promptOf('alone')).toHaveLength(1);
    await home.start(['send', 'words', '--image', 'pixel.dat'], { input: 'What is it?' }).ended;
    expect(await promptOf('words')).toMatchObject([{ type: 'image' }, { type: 'text', text: 'What is it?' }]);
  });

  test('makes one turn for the same files under one request id, and sends files with --detach, too', async () => {
    const args = ['send', 'again', 'Look', '--file', 'notes.md', '--request-id', 'once'];
    await home.ok(...args);
    await home.ok(...args);
    expect((await home.show('again')).turns).toHaveLength(1);
    await home.ok('send', 'away', 'Look', '--file', 'notes.md', '--detach');
    await until(async () => (await home.show('away')).turns[0].state === 'completed');
    expect(await promptOf('away')).toMatchObject([{ type: 'resource' }, { type: 'text', text: 'Look' }]);
  });

  test.each([
    ['no-such-file', 4, 'The file no-such-file does not exist.'],
    ['folder', 2, 'folder is a directory, not a file. Name files,'],
    ['program', 2, 'The file program is neither text in UTF-8 nor a PNG, JPEG, GIF or WebP image. Name its path'],
    ['latin1.txt', 2, 'The file latin1.txt is neither text in UTF-8 nor'],
    [
      'large.log',
      2,
      'The file large.log is larger than 8 MiB. Name its path in the prompt, and let the agent read it.',
    ],
    ['/dev/zero', 2, 'The file /dev/zero is larger than 8 MiB.'],
  ])('refuses %s before anything is stored', async (path, code, sentence) => {
    const failed = await home.run('send', 'refused', 'Look', '--file', path);
    expect(failed).toMatchObject({ code, stdout: '' });
    expect(failed.stderr).toContain(`throughline: ${sentence}`);
    expect(failed.stderr.split('\n')).toHaveLength(2);
    expect((await home.run('show', 'refused')).code).toBe(4);
  });

  test('refuses a text file as an image, files that are too large together, and stdin twice', async () => {
    const text = await home.run('send', 'no-image', 'Look', '--image', 'notes.md');
    expect(text.stderr).toBe(
      'throughline: The file notes.md is not a PNG, JPEG, GIF or WebP image. Attach text with --file.\n',
    );
    const large = await home.run('send', 'two', 'Look', '--file', 'half.log', '--file', 'half.log');
    expect(large.stderr).toMatch(/has 10\.1 MiB; the limit is 8 MiB\. Attach fewer/);
    const twice = await home.start(['send', 'twice', '-', '--file', '-'], { input: 'x' }).ended;
    expect(twice.stderr).toBe('throughline: Stdin can be read only once. Write "-" in one place.\n');
  });

  test('names the file that it has no permission to read', async (context) => {
    if (process.getuid?.() === 0) return context.skip('root may read every file');
    writeFileSync(at('secret'), 'x', { mode: 0 });
    const { stderr } = await home.run('send', 'secret', 'Look', '--file', 'secret');
    expect(stderr).toBe('throughline: Cannot read the file secret: you have no permission to read it.\n');
  });
});

describe('the prompt of throughline send', () => {
  test('is read from stdin if no words are given, and also with -', async () => {
    expect((await home.start(['send', 'piped'], { input: 'The codeword is lynx' }).ended).stdout).toBe(
      'Noted: The codeword is lynx\n',
    );
    expect((await home.start(['send', 'piped', '-'], { input: 'again' }).ended).stdout).toBe('Noted: again\n');
  });

  test('is not read from stdin if words are given', async () => {
    await home.start(['send', 'given', 'words', 'without quotes'], { input: 'from stdin' }).ended;
    expect(await promptOf('given')).toEqual([{ type: 'text', text: 'words without quotes' }]);
  });

  test('is refused if it is not UTF-8', () => {
    const { status, stderr } = spawnSync(process.execPath, [PROGRAM, 'send', 'bytes'], {
      ...{ input: Buffer.from([0xff, 0xfe, 0x41]), env: home.environment(), encoding: 'utf8', cwd: home.path },
    });
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: 'throughline: The input is not text in UTF-8. Send an image or another file with --image or --file.\n',
    });
  });

  test('is reported as missing if no words are given and stdin is a terminal', async (context) => {
    const terminal = inTerminal(home, ['send', 'nothing']);
    if (terminal === null) return context.skip('there is no script(1) to make a terminal');
    const { code, text } = await terminal.ended;
    expect({ code, text: text.trim() }).toEqual({
      code: 2,
      text: expect.stringContaining('The prompt is missing. Write it after the key, or pipe it in'),
    });
  });
});

test('-V prints the version, as --version does', async () => {
  expect(await home.ok('-V')).toBe(await home.ok('--version'));
});
