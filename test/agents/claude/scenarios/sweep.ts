// Any process of Claude deletes the transcripts that are older than its settings allow, some seconds after its start.
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, realpathSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { until } from '../../../contracts/agent-sandbox.ts';
import { type ClaudeAdapter, ClaudeHome, FIRST, SECOND } from '../../support/claude-home.ts';

export function sweep(adapter: ClaudeAdapter): void {
  test('deletes no transcript, neither ours nor others', async () => {
    // The person would have them for a day.
    await using home = await ClaudeHome.make(adapter, { cleanupPeriodDays: 1 });
    const tl = await home.open();
    await tl.conversation('old').ask(FIRST);
    await tl.close();
    const theirs = join(home.config, 'projects', '-elsewhere', `${randomUUID()}.jsonl`);
    mkdirSync(dirname(theirs));
    writeFileSync(theirs, '{"type":"user"}\n');
    const files = home.transcripts();
    const longAgo = new Date('2020-01-01');
    for (const file of files) utimesSync(file, longAgo, longAgo);
    await (await home.open()).conversation('new').ask(SECOND);
    await until('it has swept', () => existsSync(join(home.config, '.last-cleanup')));
    expect(files.filter((file) => !existsSync(file))).toEqual([]);
  });

  test('erasing a conversation with its sandbox ends the warm Claude, and names the transcript that stays in its own storage', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').ask(FIRST);
    const sandbox = join(home.path, 'sandboxes', turn.conversationId);
    expect(existsSync(sandbox)).toBe(true);
    const { remains } = await tl.engine.erase('chat', { sandbox: true });
    expect(remains).toEqual([
      { what: 'session', where: realpathSync(home.config), agent: turn.agent, sessionId: turn.sessionId },
    ]);
    expect(existsSync(sandbox)).toBe(false);
    expect(home.transcripts().filter((file) => file.endsWith(`${turn.sessionId}.jsonl`))).toHaveLength(1);
  });
}
