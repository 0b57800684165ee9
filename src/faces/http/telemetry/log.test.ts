import { expect, test } from 'vitest';
import { createLog } from './log.ts';

test('logged text cannot control a terminal, and a program reads it unchanged', () => {
  const lines: string[] = [];
  const said = 'red \u001b[31m c1 \u009b2J bidi \u202e\u200f line \u2028 bom \ufeff tag \u{e0041} é';
  createLog('info', [], (line) => lines.push(line)).warn({ err: new Error(said) }, said);
  const [line = ''] = lines;
  expect(line).not.toMatch(/(?!\n)\p{Cc}|[\u200f\u202e\u2028\ufeff\u{e0041}]/u);
  expect(JSON.parse(line)).toMatchObject({ msg: said, err: { message: said } });
});
