import { globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../src/agents/scripted/program/commands.js';
import { ERROR_CODES, ThroughlineError } from '../src/core/errors.ts';
import type { EventKind } from '../src/core/event.ts';
import { RUNGS } from '../src/core/restore/restore-settings.ts';
import { open } from '../src/index.ts';
import { STATUS } from '../src/wire/problem-codes.ts';
import { Receipt, Session } from '../src/wire/values/session.ts';
import { blocksIn, DOCUMENTS, faultsOfBlocks, ROOT, read } from './docs/blocks.ts';
import { exampleOf, exportsOf } from './docs/exports.ts';

const EXPORTS = ['src/index.ts', 'src/client.ts', 'src/testing/index.ts'].flatMap(exportsOf);

/** All options of a call, from the error message about an unknown option. */
async function optionsOf(call: () => unknown): Promise<string[]> {
  const error = await Promise.try(call).catch((refusal: unknown) => refusal);
  const { hint = '' } = error instanceof ThroughlineError ? error : {};
  return (/^Known options: (.*)\.$/.exec(hint)?.[1] ?? '').split(', ').toSorted();
}

/** A document with a call of a method that does not exist. */
const WRONG_DOCUMENT =
  "# Title\n\n```ts\nconst { reply } = await chat.ask('Hello');\nawait chat.enquire(reply);\n```\n";

test('the TypeScript in documents and comments compiles against the sources, and an error is reported with its line', () => {
  const shown = DOCUMENTS.flatMap((path) => blocksIn(path, read(path), ['ts', 'typescript']));
  const examples = new Map(EXPORTS.map((one) => [one.at, { at: `${one.at}:1`, code: exampleOf(one) ?? '' }]));
  expect(shown.length).toBeGreaterThan(10);
  const [found, ...faults] = faultsOfBlocks([
    ...blocksIn('false.md', WRONG_DOCUMENT, ['ts']),
    ...shown,
    ...examples.values(),
  ]);
  expect(found).toMatch(/^false\.md:5: .*'enquire' does not exist/);
  expect(faults).toEqual([]);
});

test('everything that a user can import has a comment with an example', () => {
  expect(EXPORTS.length).toBeGreaterThan(100);
  expect(EXPORTS.filter((one) => one.comment === null || exampleOf(one) === null).map(({ at }) => at)).toEqual([]);
});

test('no document and no example uses the engine directly, instead of the library', () => {
  const examples = globSync('examples/*.*', { cwd: ROOT });
  const users = [...DOCUMENTS, ...examples].filter((path) => /\b(?:tl|throughline|client)\.engine\b/.test(read(path)));
  expect(examples.length).toBeGreaterThan(3);
  expect(users).toEqual([]);
});

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly oneOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
}

const schema: Schema = JSON.parse(read('throughline.schema.json'));
const agents = schema.properties?.agents?.additionalProperties;
const adapters = (typeof agents === 'object' && agents.oneOf) || [];

/** The paths of all settings: `restore`, `restore.policy`, `agents.NAME.adapter` … Those inside `options` are in other documents. */
function pathsOf({ properties = {}, additionalProperties: others, oneOf = [] }: Schema, before = ''): string[] {
  const named = Object.entries(typeof others === 'object' ? { ...properties, NAME: others } : properties);
  const paths = named.flatMap(([name, inner]) => {
    const deeper = name === 'options' ? [] : pathsOf(inner, `${before}${name}.`);
    return name === 'NAME' ? deeper : [`${before}${name}`, ...deeper];
  });
  return [...new Set([...paths, ...oneOf.flatMap((one) => pathsOf(one, before))])];
}

test('docs/settings.md has every setting of the schema, and no other', () => {
  const known = pathsOf(schema).filter((path) => path !== '$schema');
  const text = read('docs/settings.md');
  const rows = text.split('\n').filter((line) => line.startsWith('| `'));
  const shown = rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  );
  expect(known).toEqual(expect.arrayContaining(['agents.NAME.adapter', 'agents.NAME.limits.turnSeconds']));
  expect(known.filter((path) => !text.includes(`\`${path}\``))).toEqual([]);
  expect(shown.filter((path) => !known.includes(path))).toEqual([]);
});

test.each([
  ['claude-sdk', 'docs/claude.md'],
  ['claude-cli', 'docs/claude.md'],
  ['acp', 'docs/acp.md'],
])('every option of %s is in %s', (adapter, document) => {
  const found = adapters.find(({ properties }) => properties?.adapter?.enum?.includes(adapter));
  const options = Object.keys(found?.properties?.options?.properties ?? {});
  expect(options.length).toBeGreaterThan(3);
  expect(options.filter((name) => !read(document).includes(`\`options.${name}\``))).toEqual([]);
});

test('docs/README.md has a link to every document', () => {
  const index = read('docs/README.md');
  const documents = DOCUMENTS.filter((path) => path.startsWith('docs/') && path !== 'docs/README.md');
  expect(documents.length).toBeGreaterThan(10);
  expect(documents.filter((path) => !index.includes(`](${path.replace('docs/', '')})`))).toEqual([]);
});

test('the JSON in documents can be parsed', () => {
  const blocks = DOCUMENTS.flatMap((path) => blocksIn(path, read(path), ['json']));
  expect(blocks.length).toBeGreaterThan(3);
  const faults = blocks.flatMap(({ at, code }) => {
    try {
      JSON.parse(code);
      return [];
    } catch (error) {
      return [`${at}: ${error}`];
    }
  });
  expect(faults).toEqual([]);
});

test('docs/scale.md calculates 10,000 turns a second from the measured turn', () => {
  const measured = new Map(
    tableIn('docs/scale.md', '<!-- of one turn -->').map(([, what = '', found = '']) => [what, found]),
  );
  const calculated = tableIn('docs/scale.md', '## 10,000 turns a second (extrapolated)');
  const rows = calculated.map(
    ([, what = '', found = '']) => [what, Number.parseFloat(found.replace(',', ''))] as const,
  );
  expect(rows).toEqual([
    ['processor time of PostgreSQL', 10 * numberOf(measured.get('processor time of PostgreSQL'))],
    ['log', 10 * numberOf(measured.get("bytes of PostgreSQL's log (WAL)"))],
    ['tables and indexes', 10 * numberOf(measured.get('bytes of tables and indexes'))],
    ['transactions', 10_000 * numberOf(measured.get('transactions (a read outside of a transaction counts as one)'))],
    [
      'processor time of Throughline',
      10 * numberOf(measured.get('processor time of the process that runs the turn, without the agent')),
    ],
  ]);
});

test('docs/scripted-agent.md has every command of the scripted agent, and no other', () => {
  const [, table = ''] = read('docs/scripted-agent.md').split('\n## Commands\n');
  const rows = table.split('\n').filter((row) => row.startsWith('| `/'));
  const shown = rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`\/([a-z-]+!?)/g)].map(([, name]) => name),
  );
  expect(shown.toSorted()).toEqual(Object.keys(COMMANDS).toSorted());
});

/** The rows of the table after a line of a document, each as its cells. */
function tableIn(document: string, line: string): string[][] {
  const [, rest = ''] = read(document).split(`${line}\n`);
  const rows = rest.trimStart().split('\n');
  const end = rows.findIndex((row) => !row.startsWith('|'));
  return rows.slice(2, end).map((row) => row.split('|').map((cell) => cell.trim()));
}

const numberOf = (cell = '') => Number.parseFloat(cell);
const namesIn = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);

test.each([
  ['receipt', Receipt],
  ['session', Session],
])('docs/http.md describes every field of a %s in a sentence, and no other', (value, schema) => {
  const rows = tableIn('docs/http.md', `<!-- every field of a ${value}; a test checks it -->`);
  expect(rows.flatMap(([, field]) => namesIn(field))).toEqual(Object.keys(schema.shape));
  for (const [, field, is] of rows) expect(is, field).toMatch(/^\S.*\.$/);
  const values = Object.values(schema.shape).flatMap((field) =>
    'options' in field ? (field.options as unknown[]) : [],
  );
  const words = rows.map(([, , is]) => is).join(' ');
  const rungs: readonly unknown[] = RUNGS; // described in concepts.md
  for (const one of values) if (!rungs.includes(one)) expect(words).toContain(`\`${one}\``);
});

describe('docs/library.md', () => {
  const tableAfter = (line: string) => tableIn('docs/library.md', line);

  test('has every option of open, of a prompt and of a conversation, and no other', async () => {
    const home = mkdtempSync(join(tmpdir(), 'throughline-docs-'));
    const tl = await open({ home });
    // @ts-expect-error
    const openOptions = await optionsOf(() => open({ other: 1 }));
    // @ts-expect-error
    const sendOptions = await optionsOf(() => tl.conversation('a').send('b', { other: 1 }).accepted);
    // @ts-expect-error
    const conversationOptions = await optionsOf(() => tl.conversation('a', { other: 1 }));
    await tl.close();
    rmSync(home, { recursive: true });
    const shown = (line: string) => tableAfter(line).flatMap(([, cell]) => namesIn(cell));
    expect(shown('<!-- every option of OpenOptions; a test checks it -->').toSorted()).toEqual(openOptions);
    expect(shown('<!-- every option of SendOptions; a test checks it -->').toSorted()).toEqual(sendOptions);
    const [, conversationCell] = /^\| `conversation\(key, options\)` \|(.*)\|$/m.exec(read('docs/library.md')) ?? [];
    expect(namesIn(conversationCell).toSorted()).toEqual(conversationOptions);
  });

  test('has every kind of event, and no other', () => {
    const shown = tableAfter('<!-- every kind of event; a test checks it -->').flatMap(([, cell]) => namesIn(cell));
    const kinds = [...read('src/core/public/event.ts').matchAll(/^ {2}'([a-z._-]+)': /gm)].map(([, kind]) => kind);
    const known: EventKind[] = ['turn.ended', 'permission.withdrawn'];
    expect(kinds).toEqual(expect.arrayContaining(known));
    expect(shown.toSorted()).toEqual([...new Set(kinds)].toSorted());
  });

  test('has every code of an error, with its HTTP status', () => {
    const rows = tableAfter('<!-- every code; a test checks it -->');
    const shown = rows.flatMap(([, codes, , status]) => namesIn(codes).map((code) => [code, Number(status)]));
    expect(Object.fromEntries(shown)).toEqual(Object.fromEntries(ERROR_CODES.map((code) => [code, STATUS[code]])));
  });

  test('has the number of lines of each example program', () => {
    const rows = tableAfter('<!-- the programs with their lengths; a test checks it -->');
    const shown = rows.map(([, link = '', lines]) => [/\((.*)\)/.exec(link)?.[1], Number(lines)]);
    expect(shown).toEqual(shown.map(([path]) => [path, read(`docs/${path}`).split('\n').length - 1]));
    expect(shown.length).toBeGreaterThan(1);
  });

  test('has every verb of a conversation and of the client', () => {
    const verbs = (file: string) =>
      [...read(file).matchAll(/^ {2}(?:async |override )*\*?([a-z]\w+)\(/gm)]
        .map(([, name = '']) => name)
        .filter((name) => name !== 'constructor');
    // Only in the right table: another table may contain the same word.
    const shownIn = (head: string) => {
      const [, rest = ''] = read('docs/library.md').split(`\n| ${head} | |\n`);
      const [table = ''] = rest.split('\n\n');
      return table.split('\n').flatMap((row) => namesIn(row.split('|')[1]).map((name) => name.replace(/\(.*/, '')));
    };
    const tables = { 'of a conversation': 'src/library/conversation.ts', 'of `tl`': 'src/library/client.ts' };
    for (const [head, file] of Object.entries(tables)) {
      expect(verbs(file).length).toBeGreaterThan(10);
      expect(verbs(file).filter((name) => !shownIn(head).includes(name))).toEqual([]);
    }
  });
});
