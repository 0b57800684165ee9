// Somebody runs `claude --resume` on the session while a turn of ours is in it.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ended, until } from '../../../e2e/support/conversations.ts';
import { type InstalledClaude, runClaude } from '../../support/claude.ts';
import { bash, type ClaudeAdapter, ClaudeHome, FIRST } from '../../support/claude-home.ts';

const RECALL = 'Which codewords have you seen?';
/** Runs until the file `hold` is gone. */
const HELD = bash('touch begun; while [ -e hold ]; do sleep 0.1; done');
const THEIRS = `${bash('echo theirs >> theirs.log')}\nmodel: say The codeword is foreign.`;

export function foreignHands(adapter: ClaudeAdapter, claude: InstalledClaude): void {
  /** A turn of ours in the middle of a tool. */
  async function inTheMiddle(home: ClaudeHome) {
    const cwd = home.directory('work');
    const host = await home.host();
    await host.calls.ask('chat', FIRST, { cwd });
    writeFileSync(join(cwd, 'hold'), '');
    const asked = host.calls.ask('chat', `${HELD}\nmodel: say Ours is done.`);
    asked.catch(() => {});
    await until('the tool runs', () => existsSync(join(cwd, 'begun')));
    await home.toolCallWritten();
    const tl = await home.open();
    const [session] = await tl.engine.sessions('chat');
    const theirs = () => runClaude(claude, ['--resume', session?.id ?? '', THEIRS], { cwd, env: home.env });
    return { cwd, host, tl, asked, session, theirs, goOn: () => rmSync(join(cwd, 'hold')) };
  }

  test('when they finish before us, the next turn finds the session diverged, and says so', async () => {
    await using home = await ClaudeHome.make(adapter);
    const { host, asked, session, theirs, goOn } = await inTheMiddle(home);
    expect((await theirs()).result.is_error).toBe(false);
    goOn();
    expect((await asked).reply).toBe('Ours is done.');
    const { reply, receipt } = await host.calls.ask('chat', RECALL);
    expect(reply).toBe('I have seen these codewords: amber.');
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 2, dropped: 0, proof: 'proved' });
    expect(receipt.tried[0]).toMatchObject({ rung: 'live', sessionId: session?.id });
    expect(receipt.tried[0]?.failure).toContain('somebody else has used it');
  });

  test('when we are killed and they go on from our turn, our record has nothing of theirs, and the receipt says so', async () => {
    await using home = await ClaudeHome.make(adapter);
    const { cwd, host, tl, session, theirs } = await inTheMiddle(home);
    // Our Claude goes on alone; what they do hangs on the last that it wrote.
    await host.kill();
    expect((await theirs()).result.is_error).toBe(false);
    const { reply, receipt } = await tl.conversation('chat').ask(RECALL);
    expect(reply).toBe('I have seen these codewords: amber.');
    expect(receipt.sessionId).not.toBe(session?.id);
    expect(receipt.tried).toMatchObject([{ rung: 'resume', sessionId: session?.id }]);
    expect(receipt.tried[0]?.failure).toContain('somebody else has used it');
    const sessions = await tl.engine.sessions('chat');
    expect(sessions.find(({ id }) => id === session?.id)?.state).toBe('diverged');
    const [, turn] = await tl.engine.turns('chat');
    expect(turn && (await ended(tl.engine, turn)).state).toBe('interrupted');
    const { records } = await tl.engine.export('chat');
    const names = records[1]?.parts.map((part) => (part.type === 'tool' ? part.input : part));
    expect(names).toEqual([{ command: JSON.parse(HELD.replace(/^.*?(?=\{)/, '')).command }]);
    expect(readFileSync(join(cwd, 'theirs.log'), 'utf8')).toBe('theirs\n');
  });
}
