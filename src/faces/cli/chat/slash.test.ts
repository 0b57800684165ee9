import { expect, test } from 'vitest';
import { noSuchConversation } from '../../../core/errors.ts';
import { completions, parseSlash, SLASH_COMMANDS, type SlashContext } from './slash.ts';
import type { Described } from './text/cells.ts';

test.each([
  ['hello', { kind: 'prompt', text: 'hello' }],
  ['//compact now', { kind: 'prompt', text: '/compact now' }],
  ['/fork\n/kill', { kind: 'prompt', text: '/fork\n/kill' }],
  ['/fork 3 copy', { kind: 'command', name: 'fork', command: SLASH_COMMANDS.fork, words: ['3', 'copy'] }],
  ['/quit ', { kind: 'command', name: 'quit', command: SLASH_COMMANDS.quit, words: [] }],
  ['/forks', { kind: 'unknown', message: expect.stringContaining('Did you mean /fork?') }],
  ['/hlp', { kind: 'unknown', message: expect.stringContaining('Did you mean /help?') }],
  ['/ussage', { kind: 'unknown', message: expect.stringContaining('Did you mean /usage?') }],
  ['/retry 3', { kind: 'unknown', message: '/retry takes nothing after it.' }],
  ['/fork 3 copy more', { kind: 'unknown', message: '/fork takes [TURN] [KEY].' }],
  ['/open my notes', { kind: 'command', name: 'open', command: SLASH_COMMANDS.open, words: ['my', 'notes'] }],
  ['/constructor', { kind: 'unknown', message: expect.stringContaining('write //constructor') }],
])('%j', (text, expected) => {
  expect(parseSlash(text)).toEqual(expected);
});

test('a command is completed from its beginning', () => {
  expect(completions('/se')).toEqual(['sessions']);
  expect(completions('/')).toHaveLength(Object.keys(SLASH_COMMANDS).length);
  expect(completions('no')).toEqual([]);
});

test('every command of the conversation is there', () => {
  const asked = [
    'agent',
    'fork',
    'retry',
    'cancel',
    'sessions',
    'usage',
    'export',
    'kill',
    'help',
    'quit',
    'new',
    'open',
  ];
  expect(Object.keys(SLASH_COMMANDS)).toEqual(expect.arrayContaining(asked));
});

test('/help says how a prompt that begins with a slash is sent', async () => {
  const rows: Described[] = [];
  await SLASH_COMMANDS.help?.run(
    { describe: (more: readonly Described[]) => rows.push(...more) } as unknown as SlashContext,
    [],
  );
  expect(rows.map(([name, does]) => `${name}: ${does}`)).toContain('//TEXT: send /TEXT to the agent, as a prompt');
});

test.each([
  [
    'open',
    'nots',
    'There is no conversation "nots".',
    'Did you mean "notes"? /list shows them; "/new KEY" begins one.',
  ],
  ['open', 'other', 'There is no conversation "other".', '/list shows them; "/new KEY" begins one.'],
  ['agent', 'cladue', 'There is no agent "cladue".', 'Did you mean "claude"? Available: claude, codex.'],
])('/%s %s says which name was probably meant', async (command, word, message, hint) => {
  const context = {
    engine: {
      list: async () => [{ id: 'id-1', key: 'notes' }],
      agents: async () => [{ name: 'claude' }, { name: 'codex' }],
    },
    open: async (key: string) => {
      throw noSuchConversation(key);
    },
  } as unknown as SlashContext;
  const run = async () => SLASH_COMMANDS[command]?.run(context, [word]);
  await expect(run()).rejects.toMatchObject({ code: 'not_found', message, hint });
});
