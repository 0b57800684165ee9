import { describe, expect, test } from 'vitest';
import { askedOf, headlineOf, mayAnswer } from './asked.ts';

describe('what is asked', () => {
  test('a command is shown in full, and the rest of the input beside it', () => {
    const rawInput = { command: 'rm -rf build', timeout: 5 };
    const asked = askedOf({ title: 'Run it', toolCall: { title: 'Bash', kind: 'execute', rawInput } });
    expect(asked).toMatchObject({ tool: 'Bash', kind: 'execute', command: 'rm -rf build' });
    expect(JSON.parse(asked.input ?? '')).toEqual({ timeout: 5 });
  });

  test('a command as a list of words can be copied into a shell', () => {
    const { command } = askedOf({ title: '', toolCall: { rawInput: { cmd: ['echo', "it's", 'a b'] } } });
    expect(command).toBe(`echo 'it'\\''s' 'a b'`);
  });

  test('a diff names its file, and the file is not named twice', () => {
    const content = [{ type: 'diff', path: '/a', oldText: 'x', newText: 'y' }];
    const asked = askedOf({ title: 'Edit', toolCall: { title: 'Edit', content, locations: [{ path: '/a' }] } });
    expect(asked).toMatchObject({ tool: null, targets: [], diffs: [{ path: '/a', oldText: 'x', newText: 'y' }] });
  });

  test('input that a diff shows is not shown as JSON again, and everything else is', () => {
    const content = [{ type: 'diff', path: '/a', oldText: 'x', newText: 'y' }];
    const edits = [{ old_string: 'x', new_string: 'y' }];
    const rawInput = { file_path: '/a', edits, replace_all: true, dry: false, extra: 'z' };
    const { input } = askedOf({ title: 'Edit', toolCall: { content, rawInput } });
    expect(JSON.parse(input ?? '')).toEqual({ replace_all: true, extra: 'z' });
    expect(askedOf({ title: 'Edit', toolCall: { content, rawInput: { edits } } }).input).toBeNull();
  });

  test.each([null, 'text', 7, [], { rawInput: 'raw', content: [null, 3], locations: 'none' }])(
    'a tool call of any shape is shown: %j',
    (toolCall) => {
      expect(askedOf({ title: 'Anything', toolCall })).toMatchObject({ diffs: [], targets: [] });
    },
  );
});

describe('what the card asks', () => {
  const diff = (path: string, oldText: string | null) => ({ type: 'diff', path, oldText, newText: 'y' });
  test.each([
    [{ rawInput: { command: 'ls' } }, 'May Codex run this command?'],
    [{ content: [diff('/a', 'x')] }, 'May Codex change this file?'],
    [{ content: [diff('/a', 'x'), diff('/b', 'x')] }, 'May Codex change these 2 files?'],
    [{ kind: 'read', locations: [{ path: '/a' }] }, 'May Codex read this file?'],
    [{ kind: 'fetch', locations: [{ path: 'https://x' }] }, 'May Codex open this address?'],
    [{ kind: 'switch_mode' }, null],
    ['anything', null],
  ])('%j', (toolCall, headline) => {
    expect(headlineOf(askedOf({ title: 'T', toolCall }), 'Codex')).toBe(headline);
  });
});

describe('which press answers', () => {
  test.each([
    ['a click on a card that has been visible long enough', { at: 600, repeats: false }, 600, true],
    ['a press that began before the card was ready, and ended after', { at: 400, repeats: false }, 900, false],
    ['a held key, at any time', { at: 5_000, repeats: true }, 5_000, false],
    ['a screen reader, which sends no press', null, 700, true],
    ['a screen reader in the first half second', null, 300, false],
  ])('%s', (_name, press, now, answers) => {
    expect(mayAnswer(0, press, now)).toBe(answers);
  });
});
