import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { CliHome, until } from './process.ts';
import { inTerminal } from './terminal.ts';

const home = new CliHome();
afterAll(() => home.remove());

const QUESTION = '/ask write the notes\n/tool write notes.log';

/** Whether the tool ran: it writes a line into the conversation's working directory. */
async function toolRan(key: string): Promise<boolean> {
  const { conversation } = await home.show(key);
  const file = join(home.path, 'home', 'sandboxes', conversation.id, 'work', 'notes.log');
  return existsSync(file) && readFileSync(file, 'utf8').startsWith('write ');
}

/** Waits for the only open permission of a conversation. */
async function openPermission(key: string): Promise<{ id: string }> {
  let found: { id: string }[] = [];
  await until(async () => {
    found = (await home.here.run('permissions', key, '--json')).stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    return found.length > 0;
  });
  expect(found).toHaveLength(1);
  return found[0] as { id: string };
}

describe('without a terminal', () => {
  test('a permission is denied at once, and the agent continues without it', async () => {
    const { code, stdout, stderr } = await home.here.run('send', 'denied', QUESTION);
    expect(code).toBe(0);
    expect(stdout).toBe('Permission denied: write the notes.\n');
    expect(stderr).toContain('permission asked: write the notes');
    expect(stderr).toContain('permission denied: nobody can answer here');
    expect(await toolRan('denied')).toBe(false);
    expect(await home.here.ok('show', 'denied')).toContain('\ndenied: write the notes (nobody can answer here)\n');
    const result = (await home.here.lines('send', 'denied', QUESTION)).at(-1);
    expect(result).toMatchObject({ denied: [{ title: 'write the notes', reason: 'nobody can answer here' }] });
    const [, last] = await home.here.lines('permissions', 'denied', '--all');
    expect(last).toMatchObject({ state: 'denied', reason: 'nobody can answer here' });
  });

  test.each([
    ['the id of an option', 'allow', true],
    ['the shorthand deny', 'deny', false],
    ['the number of an option', '2', false],
  ])('a waiting permission is answered from another process by %s', async (name, answer, allowed) => {
    const key = `waits for ${name}`;
    const running = home.start(['send', key, QUESTION, '--permissions', 'ask']);
    const [, id = ''] = await running.until('stderr', /"throughline answer (\S+) OPTION"/);
    expect(running.stderr).toContain('Waiting for an answer: write the notes.');
    expect(await openPermission(key)).toMatchObject({ id, title: 'write the notes', state: 'open' });
    expect((await home.here.run('answer', id, 'perhaps')).code).toBe(2);
    await home.here.ok('answer', id, answer);
    expect((await running.ended).code).toBe(0);
    expect(await toolRan(key)).toBe(allowed);
    expect((await home.here.run('answer', id, 'allow')).code).toBe(1);
    const [answered] = await home.here.lines('permissions', key, '--all');
    expect(answered).toMatchObject({ id, state: 'answered', answeredBy: 'local' });
  });

  test('only the owner can answer a permission', async () => {
    const running = home.start(['send', 'owned', QUESTION, '--permissions', 'ask', '--as', 'owner']);
    const [, id = ''] = await running.until('stderr', /"throughline answer (\S+) OPTION"/);
    expect((await home.here.run('answer', id, 'allow', '--as', 'thief')).code).toBe(4);
    await home.here.ok('answer', id, 'deny', '--as', 'owner');
    expect((await running.ended).stdout).toBe('Permission denied: write the notes.\n');
  });

  test('no permission is listed if none was asked', async () => {
    const { code, stdout, stderr } = await home.here.run('permissions');
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '', stderr: 'No question waits for an answer.\n' });
  });
});

describe('at a terminal', () => {
  test('the person is asked again until the answer is valid', async (context) => {
    const terminal = inTerminal(home, ['send', 'tty', QUESTION]);
    if (terminal === null) return context.skip('needs the program "script" to make a terminal');
    await terminal.until(/The agent asks: write the notes/);
    terminal.type('perhaps\n');
    await terminal.until(/"perhaps" is not one of the answers/);
    terminal.type('1\n');
    const { code, text } = await terminal.ended;
    expect({ code, text }).toMatchObject({ code: 0 });
    expect(await toolRan('tty')).toBe(true);
  });

  test('a permission that is answered elsewhere is no longer asked', async (context) => {
    const terminal = inTerminal(home, ['send', 'tty-other', QUESTION]);
    if (terminal === null) return context.skip('needs the program "script" to make a terminal');
    await terminal.until(/The agent asks: write the notes/);
    await home.here.ok('answer', (await openPermission('tty-other')).id, 'deny');
    expect((await terminal.ended).code).toBe(0);
    expect(await toolRan('tty-other')).toBe(false);
  });

  test('Ctrl-C while a permission is asked cancels the turn', async (context) => {
    const terminal = inTerminal(home, ['send', 'tty-cancel', QUESTION]);
    if (terminal === null) return context.skip('needs the program "script" to make a terminal');
    await terminal.until(/The agent asks: write the notes/);
    terminal.type('\u0003');
    expect((await terminal.ended).code).toBe(130);
    expect((await home.show('tty-cancel')).turns[0].state).toBe('cancelled');
  });
});
