import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { prompt } from '../../../test/values/arbitrary.ts';
import { faultOf } from '../../../test/values/thrown.ts';
import { checkName } from '../input/names.ts';
import { type ContentBlock, isObject, parsePrompt, parseSaid, promptText, titleOf } from './content.ts';

const said = (text: string) => [{ type: 'text', text }] as const;
const image = (data: string) => ({ type: 'image', mimeType: 'image/png', data });

describe('a prompt', () => {
  test('may be a text', () => {
    expect(parsePrompt('hello')).toEqual(said('hello'));
  });

  test('keeps its blocks as given, with fields that are not known', () => {
    const blocks = [{ type: 'text', text: 'hello', annotations: { priority: 1 } }];
    expect(parsePrompt(blocks)).toEqual(blocks);
  });

  test('of valid blocks is accepted unchanged', () => {
    fc.assert(
      fc.property(prompt, (blocks) => {
        expect(parsePrompt(blocks)).toEqual(blocks);
      }),
    );
  });

  test.each([
    ['', 'The prompt is empty.'],
    [' \n\t', 'The prompt is empty.'],
    [[said('')[0], said(' ')[0]], 'The prompt is empty.'],
    [[], 'A prompt is a text or a non-empty list of blocks.'],
    [null, 'A prompt is a text or a non-empty list of blocks.'],
    [[said('a')[0], 7], 'Prompt block 2 is not an object.'],
    [[[]], 'Prompt block 1 is not an object.'],
    [[{ type: 'video' }], /^Prompt block 1 has the type "video"; known are text, image/],
    [[{ type: 'toString' }], /has the type "toString"/],
    [[{ type: 1n }], /has the type a bigint/],
    [[{ type: 'text' }], 'Prompt block 1 (text) needs the text field "text".'],
    [[{ type: 'image', data: 'AA==' }], 'Prompt block 1 (image) needs the text field "mimeType".'],
    [[image('')], 'Prompt block 1 (image.data) is empty.'],
    [[image('no base64')], 'Prompt block 1 (image.data) is not base64: it has " " at index 2.'],
    [[image('AAAA\n')], 'Prompt block 1 (image.data) is not base64: it has "\\n" at index 4.'],
    [[image('AA-_')], 'Prompt block 1 (image.data) is not base64: it has "-" at index 2.'],
    [[image('A===')], 'Prompt block 1 (image.data) is not base64: it has "=" at index 1.'],
    [[image('AAA')], /^Prompt block 1 \(image\.data\) is not base64: it has 3 characters/],
    [[image('data:image/png;base64,AAAA')], 'Prompt block 1 (image.data) is not base64: it is a data URL.'],
    [[said('a')[0], { ...image('é'), type: 'audio' }], /^Prompt block 2 \(audio\.data\) is not base64/],
    [[{ type: 'resource', resource: { uri: 'a', blob: '?' } }], /^Prompt block 1 \(resource\.blob\) is not base64/],
    [[{ type: 'resource' }], 'Prompt block 1 (resource) needs resource.uri.'],
    [[{ type: 'resource', resource: { uri: 'a' } }], /needs either resource.text or resource.blob/],
    [[{ type: 'resource', resource: { uri: 'a', text: 'b', blob: 'c' } }], /needs either/],
    ['ab\ud83d', 'The prompt contains an unpaired surrogate, U+D83D at index 2.'],
    [[said('a')[0], said('\ude00')[0]], 'Prompt block 2 (text) contains an unpaired surrogate, U+DE00 at index 0.'],
    [
      [{ type: 'resource', resource: { uri: 'a', text: 'b\ud800' } }],
      'Prompt block 1 (resource.text) contains an unpaired surrogate, U+D800 at index 1.',
    ],
    [[{ ...said('a')[0], _meta: { x: ['\ud800'] } }], /^Prompt block 1 \(_meta\.x\[0\]\) contains an unpaired/],
  ])('that is wrong is refused with the place of the fault: %#', (input, message) => {
    const fault = faultOf(() => parsePrompt(input));
    expect(fault?.code).toBe('invalid');
    if (typeof message === 'string') expect(fault?.message).toBe(message);
    else expect(fault?.message).toMatch(message);
  });

  test.each(['AAAA', 'AAA=', 'AA==', 'aGVs+/8='])('may have an image in base64: %s', (data) => {
    expect(parsePrompt([image(data)])).toEqual([image(data)]);
  });

  test('of an earlier turn is accepted, whatever its data', () => {
    expect(parseSaid([image('no base64')])).toEqual([image('no base64')]);
  });

  test('with much data is checked', () => {
    const large = 'AAAA'.repeat(3_000_000);
    expect(parsePrompt([image(large)])).toHaveLength(1);
    expect(faultOf(() => parsePrompt([image(`${large}!AAA`)]))?.message).toContain('at index 12000000');
  });

  test('with a value that JSON cannot hold is refused, also in a field that is not known', () => {
    expect(faultOf(() => parsePrompt([{ type: 'text', text: 'hello', _meta: { big: 1n } }]))).toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('JSON'),
    });
  });

  test('with a missing element in its list is refused', () => {
    const holed = [said('a')[0], said('b')[0]];
    delete (holed as unknown[])[0];
    expect(faultOf(() => parsePrompt(holed))?.message).toBe('Prompt block 1 is not an object.');
  });

  test('of any value is accepted, or refused as invalid, and nothing else is thrown', () => {
    const block = fc.record({
      type: fc.oneof(fc.constantFrom('text', 'image', 'resource', '__proto__'), fc.anything()),
    });
    const anything = fc.anything({ withBigInt: true, withSparseArray: true, withNullPrototype: true, withSet: true });
    fc.assert(
      fc.property(fc.oneof(anything, fc.array(anything), fc.array(block)), (input) => {
        const fault = faultOf(() => parsePrompt(input));
        if (fault !== null) expect(fault.code).toBe('invalid');
      }),
      { numRuns: 2_000 },
    );
  });
});

test('blocks other than text are named in brackets', () => {
  const blocks = parsePrompt([
    { type: 'text', text: 'see' },
    { type: 'image', data: 'AA==', mimeType: 'image/png' },
    { type: 'audio', data: 'AA==', mimeType: 'audio/wav' },
    { type: 'resource_link', uri: 'file:///a', name: 'a' },
    { type: 'resource', resource: { uri: 'file:///b', text: 'content' } },
    { type: 'resource', resource: { uri: 'file:///c', blob: 'AA==' } },
  ]);
  expect(promptText(blocks).split('\n')).toEqual([
    'see',
    '[image image/png]',
    '[audio audio/wav]',
    '[link a: file:///a]',
    '[file file:///b]',
    'content',
    '[file file:///c]',
  ]);
});

describe('a title', () => {
  test('is the first line of the prompt', () => {
    expect(titleOf(said('\n  Fix the door  \nand the window'))).toBe('Fix the door');
  });

  test('is the first line of text, not the file before it', () => {
    const file: ContentBlock = { type: 'resource', resource: { uri: 'file:///a.txt', text: 'its text' } };
    expect(titleOf([file, ...said('What is this?')])).toBe('What is this?');
    expect(titleOf([file])).toBe('[file file:///a.txt]');
  });

  test('has no control characters, so that a fork or an import accepts it', () => {
    expect(titleOf(said('\u0001\n\u001b[31mred\talert\u0007\nmore'))).toBe('[31mred alert');
    fc.assert(
      fc.property(prompt, (blocks) => {
        const title = titleOf(blocks);
        if (title !== '') expect(checkName(title, 'title')).toBe(title);
      }),
    );
  });

  test('is one line of at most 80 characters, and cuts no character in two', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
        const title = titleOf(said(text));
        expect([...title].length).toBeLessThanOrEqual(80);
        expect(title).not.toContain('\n');
        expect(title.isWellFormed()).toBe(true);
      }),
    );
  });
});

test('an object is neither null nor a list', () => {
  expect([{}, Object.create(null), null, [], 'text', undefined].map(isObject)).toEqual([
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
});
