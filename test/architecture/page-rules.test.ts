import { expect, test } from 'vitest';
import { brokenPageImports, unsafeMarkup } from './page-rules.ts';

test.each([
  [`import { open } from 'throughline'`, /imports throughline:/],
  [`import { startModel } from 'throughline/testing'`, /imports throughline\/testing/],
  [`import { readFile } from 'node:fs'`, /runs in browsers and imports node:fs/],
  [`import type { Store } from '../../../src/ports/store.ts'`, /imports src\/ports\/store\.ts/],
  [`import { connect } from '../../../src/client.ts'`, /imports src\/client\.ts/],
  [`import { readFile } from 'fs'`, /runs in browsers and imports fs/],
  [`import { rows } from './for-you.test.tsx'`, /which is a test/],
  ['await import(name)', /computed/],
])('the page must not contain: %s', (source, why) => {
  expect(brokenPageImports('web/src/for-you/for-you.tsx', source)).toEqual([expect.stringMatching(why)]);
});

test.each([
  [`import { useState } from 'react'; import '../styles.css'`],
  [`import { connect } from 'throughline/client'`],
  [`import { isOver } from '../../../src/core/turn/turn.ts'`],
  [`const { Plot } = await import('./plot.tsx')`],
])('the page may contain: %s', (source) => {
  expect(brokenPageImports('web/src/for-you/for-you.tsx', source)).toEqual([]);
});

test('a test of the page may import anything', () => {
  const source = `import { readFileSync } from 'node:fs'; import { open } from '../../../src/index.ts'`;
  expect(brokenPageImports('web/src/for-you/sections.test.ts', source)).toEqual([]);
});

test.each([
  ['const a = <p dangerouslySetInnerHTML={{ __html: text }} />', 'dangerouslySetInnerHTML'],
  ['const props = { dangerouslySetInnerHTML: x }', 'dangerouslySetInnerHTML'],
  ['node.innerHTML = text', 'innerHTML'],
  [`node['innerHTML'] = text`, 'innerHTML'],
  [`node.insertAdjacentHTML('beforeend', text)`, 'insertAdjacentHTML'],
  ['document.write(text)', 'document.write'],
  ['eval(text)', 'eval'],
  [`new Function('return 1')`, 'Function'],
  [`globalThis.Function('return 1')`, 'Function'],
  ['const make = Function', 'Function'],
  ['window.document.writeln(text)', 'document.write'],
  ['const { write } = document', 'document.write'],
  ['const frame = <iframe srcDoc={text} />', 'srcDoc'],
  ['new DOMParser()', 'DOMParser'],
])('code that turns text into markup or code is found: %s', (source, name) => {
  expect(unsafeMarkup('web/src/a.tsx', source)).toEqual([name]);
});

test.each([
  '// innerHTML',
  `const word = 'use innerHTML'`,
  'stream.write(text)',
  'type F = Function',
  'f instanceof Function',
])('other code is not reported: %s', (source) => {
  expect(unsafeMarkup('web/src/a.tsx', source)).toEqual([]);
});
