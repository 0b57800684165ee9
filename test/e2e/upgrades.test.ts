import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { open } from '../../src/index.ts';
import { MIGRATIONS } from '../../src/stores/sqlite/migrations/list.ts';
import { fillHome, schemaOf } from '../contracts/older-database.ts';
import { temporaryFolder } from '../contracts/sqlite-folder.ts';
import { CliHome } from './cli/process.ts';

const AGENTS = {
  ant: { adapter: 'scripted' },
  bee: { adapter: 'scripted' },
  scripted: { adapter: 'scripted' },
} as const;
/** Every earlier schema. The current one needs no migration. */
const SCHEMAS = MIGRATIONS.slice(1).map((_, index) => index + 1);

describe.each(SCHEMAS)('data of schema %i', (schema) => {
  test('is upgraded, intact and readable, and its conversations continue', async () => {
    const home = temporaryFolder();
    const file = fillHome(home, schema);
    const tl = await open({ home, settings: { agents: AGENTS, defaultAgent: 'ant' } });
    onTestFinished(() => tl.close());
    expect(schemaOf(file)).toBe(MIGRATIONS.length);
    const { engine } = tl;
    const conversations = await engine.list();
    expect(conversations.map(({ key }) => key)).toEqual(expect.arrayContaining(['notes', 'branch', 'killed']));
    for (const { id } of conversations) expect(await engine.verify(id)).toMatchObject({ broken: null });

    const { turns } = await engine.show('notes');
    expect(turns.map(({ n, state }) => [n, state])).toEqual([
      [1, 'completed'],
      [2, 'completed'],
      [3, 'completed'],
      [4, 'completed'],
      [5, 'failed'],
      [6, 'completed'],
    ]);
    expect(turns[0]?.prompt).toEqual([{ type: 'text', text: 'The codeword is amber-heron' }]);
    expect(turns[2]?.prompt).toEqual([{ type: 'text', text: expect.stringMatching(/0123456789 $/) }]);
    expect(turns[3]?.reply).toContain('amber-heron');
    expect((await engine.search('osprey')).length).toBeGreaterThan(0);
    const first = { requestId: 'first', permissions: 'deny' } as const;
    expect((await engine.submit('notes', 'The codeword is amber-heron', first)).duplicate).toBe(true);
    expect((await engine.as('ann').list()).map(({ key }) => key)).toEqual(['spoken']);
    expect(await engine.turns('killed')).toMatchObject([{ state: 'interrupted' }]);
    const states = async () =>
      new Map((await engine.list()).map(({ key, state, lastAgent }) => [key, [state, lastAgent]]));
    await expect.poll(async () => (await states()).get('killed')).toEqual(['interrupted', 'ant']);
    expect((await states()).get('notes')).toEqual(['idle', turns.at(-1)?.agent]);
    expect((await engine.list({ agent: 'ant', state: 'interrupted' })).map(({ key }) => key)).toEqual(['killed']);
    if (schema >= 5) expect(await tl.tasks.list()).toMatchObject([{ name: 'one', state: 'done' }]);
    if (schema >= 6) expect(conversations.map(({ key }) => key)).not.toContain('gone');

    // The sessions of its agents are not in this home, so the history is delivered again.
    const { reply, receipt } = await tl.conversation('notes').ask('Which codewords have you seen?', { agent: 'ant' });
    expect(reply).toContain('amber-heron');
    expect(reply).toContain('osprey');
    expect(receipt).toMatchObject({ rung: 'transcript', dropped: 0 });
  });
});

test('commands that only read leave older data as it is, and say so; a command that writes upgrades it', async () => {
  const cli = new CliHome(AGENTS);
  onTestFinished(() => cli.remove());
  const file = fillHome(join(cli.path, 'home'), 12);
  const reading = [['list'], ['show', 'notes'], ['verify', 'notes'], ['keys'], ['task', 'list'], ['doctor']];
  for (const args of reading) {
    const { code, stderr } = await cli.run(...args);
    // The exit code of doctor depends on what it finds.
    expect({ args, code: args[0] === 'doctor' ? 0 : code, stderr }).toEqual({
      args,
      code: 0,
      stderr: expect.stringContaining('written by an older version (schema 12 of'),
    });
    expect({ args, schema: schemaOf(file) }).toEqual({ args, schema: 12 });
  }
  await cli.ok('send', 'notes', 'hello', '--agent', 'ant');
  expect(schemaOf(file)).toBe(MIGRATIONS.length);
  expect(schemaOf(`${file}.schema-12`)).toBe(12);
});
