import { expect, test } from 'vitest';
import { withCharacters } from './entities.ts';

test.each([
  ['a &amp; b &lt;i&gt; &quot;c&quot; &apos;', 'a & b <i> "c" \''],
  ['1&nbsp;000 &copy; &eacute; &yuml; &frac12;', '1\u00a0000 © é ÿ ½'],
  ['&alpha;&omega;&Omega;&sigmaf;&Sigma;', 'αωΩςΣ'],
  ['&hellip; &rarr; &le; &euro; &mdash;', '… → ≤ € —'],
  ['&#65;&#x42;&#X1F600;', 'AB😀'],
  ['&#0; &#xD800; &#x110000;', '\ufffd \ufffd \ufffd'],
  ['AT&T, &unknown; &amp &;', 'AT&T, &unknown; &amp &;'],
  ['&amp;lt;', '&lt;'],
])('%j', (text, expected) => {
  expect(withCharacters(text)).toBe(expected);
});
