// Claude deletes old transcripts some seconds after each start (`cleanupPeriodDays`). Erasing a conversation leaves its transcript.
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, realpathSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { until } from '../../../contracts/agent-sandbox.ts';
import { isAlive } from '../../../contracts/liveness.ts';
import { sentTo } from '../../../e2e/support/stored.ts';
import { type ClaudeAdapter, ClaudeHome, FIRST, SECOND } from '../../support/claude-home.ts';

export function cleanup(adapter: ClaudeAdapter): void {
  test('a Claude that we run deletes no old transcript, neither ours nor one of the user', async () => {
    // The user's own Claude would delete them after a day.
    await using home = await ClaudeHome.make(adapter, { cleanupPeriodDays: 1 });
    const tl = await home.open();
    await tl.conversation('old').ask(FIRST);
    await tl.close();
    const ofUser = join(home.config, 'projects', '-elsewhere', `${randomUUID()}.jsonl`);
    mkdirSync(dirname(ofUser));
    writeFileSync(ofUser, '{"type":"user"}\n');
    const files = home.transcripts();
    const longAgo = new Date('2020-01-01');
    for (const file of files) utimesSync(file, longAgo, longAgo);
    await (await home.open()).conversation('new').ask(SECOND);
    await until('Claude has run its cleanup', () => existsSync(join(home.config, '.last-cleanup')));
    expect(files.filter((file) => !existsSync(file))).toEqual([]);
  });

  test('erasing a conversation with its sandbox ends the warm Claude, and names the transcript that stays in Claude’s storage', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').ask(FIRST);
    const { pid } = sentTo(home, turn.id);
    expect(isAlive(pid)).toBe(true);
    const sandbox = join(home.path, 'sandboxes', turn.conversationId);
    expect(existsSync(sandbox)).toBe(true);
    const { remains } = await tl.engine.erase('chat', { sandbox: true });
    expect(isAlive(pid)).toBe(false);
    expect(remains).toEqual([
      { what: 'session', where: realpathSync(home.config), agent: turn.agent, sessionId: turn.sessionId },
    ]);
    expect(existsSync(sandbox)).toBe(false);
    expect(home.transcripts().filter((file) => file.endsWith(`${turn.sessionId}.jsonl`))).toHaveLength(1);
  });
}
