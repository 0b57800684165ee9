import { expect, test } from 'vitest';
import { replacedWords } from './plain-words.ts';

test.each<[string, string, string[]]>([
  ['src/x.ts', 'isUnsettled, settled(), await openPatiently()', ['settled', 'openPatiently']],
  ['src/x.ts', "state: 'settled' // when it has settled", ['settled']],
  ['src/x.ts', 'interface Room {} // room for one, worth it', ['interface Room']],
  [
    'docs/x.md',
    'the bell was closed and rung; it is rung twice. A receipt names its rung.',
    ['bell was closed and rung', 'is rung'],
  ],
  ['docs/x.md', 'Null: it has, or is about to. It is about to begin.', ['or is about to.']],
  ['CONTRIBUTING.md', '| /lock is not to be had. | Cannot lock. |\n/lock is not to be had.', ['is not to be had']],
  ['CHANGELOG.md', '`tasks.settled` is new. It settled.', ['settled']],
])('replaced words are found in %s: %s', (path, source, found) => {
  expect(replacedWords(path, source)).toEqual(found);
});
