import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ACP_AGENTS, versionOf } from './agents.ts';
import { type Tried, tableOf, withTable } from './table.ts';

const results: Tried[] = JSON.parse(readFileSync(join(import.meta.dirname, 'results.json'), 'utf8'));
const DOCUMENT = readFileSync(join(import.meta.dirname, '../../docs/acp-agents.md'), 'utf8');

describe('the table of agents', () => {
  test('has for each agent whether it passed, failed or cannot be installed, and why', () => {
    const table = tableOf([
      { agent: 'a', version: '1.0', notInstallable: null, results: { killed: null, forked: 'x | y\n<z>' } },
      { agent: 'b', version: '2.0', notInstallable: 'no such package', results: {} },
      { agent: 'c', version: '3.0', notInstallable: null, results: { killed: null } },
    ]);
    expect(table.split('\n')).toEqual([
      '| scenario | a (1.0) | b (2.0) | c (3.0) |',
      '| --- | --- | --- | --- |',
      '| killed | passed | not installable: no such package | passed |',
      '| forked | failed: x \\| y &lt;z> | not installable: no such package | not tried |',
    ]);
  });

  test('replaces the previous table, and nothing else of the text', () => {
    const once = withTable(DOCUMENT, '| one |');
    expect(withTable(once, '| two |')).toBe(once.replace('| one |', '| two |'));
    expect(() => withTable('no marks', '| one |')).toThrow('no place');
  });

  test('in docs/acp-agents.md agrees with the stored results and the tested versions', () => {
    expect(withTable(DOCUMENT, tableOf(results))).toBe(DOCUMENT);
    const versions = Object.entries(ACP_AGENTS).map(([name, agent]) => [name, versionOf(agent)]);
    expect(results.map(({ agent, version }) => [agent, version])).toEqual(versions);
  });
});
