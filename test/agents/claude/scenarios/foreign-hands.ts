// Somebody else runs `claude --resume` on the session while our turn runs.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ended, until, WHICH_CODEWORDS } from '../../../e2e/support/conversations.ts';
import { type InstalledClaude, runClaude } from '../../support/claude.ts';
import { bash, type ClaudeAdapter, ClaudeHome, FIRST } from '../../support/claude-home.ts';

/** A tool that runs until the file `hold` is deleted. */
const WAITING_TOOL = bash('touch begun; while [ -e hold ]; do sleep 0.1; done');
const THEIRS = `${bash('echo theirs >> theirs.log')}\nmodel: say The codeword is foreign.`;

export function foreignHands(adapter: ClaudeAdapter, claude: InstalledClaude): void {
  /** Starts a turn and waits until its tool runs. */
  async function startTurn(home: ClaudeHome) {
    const cwd = home.directory('work');
    const host = await home.host();
    await host.calls.ask('chat', FIRST, { cwd });
    writeFileSync(join(cwd, 'hold'), '');
    const answer = host.calls.ask('chat', `${WAITING_TOOL}\nmodel: say Ours is done.`);
    answer.catch(() => {}); // one test kills the host before it can answer
    await until('the tool runs', () => existsSync(join(cwd, 'begun')));
    await home.toolCallWritten();
    const tl = await home.open();
    const [session] = await tl.engine.sessions('chat');
    const promptElsewhere = () => runClaude(claude, ['--resume', session?.id ?? '', THEIRS], { cwd, env: home.env });
    return { cwd, host, tl, answer, session, promptElsewhere, endTool: () => rmSync(join(cwd, 'hold')) };
  }

  test('when they finish before our turn, the next turn uses another session, and the receipt says why', async () => {
    await using home = await ClaudeHome.make(adapter);
    const { host, answer, session, promptElsewhere, endTool } = await startTurn(home);
    expect((await promptElsewhere()).result.is_error).toBe(false);
    endTool();
    expect((await answer).reply).toBe('Ours is done.');
    const { reply, receipt } = await host.calls.ask('chat', WHICH_CODEWORDS);
    expect(reply).toBe('I have seen these codewords: amber.');
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 2, dropped: 0, proof: 'proved' });
    expect(receipt.tried[0]).toMatchObject({ rung: 'live', sessionId: session?.id });
    expect(receipt.tried[0]?.failure).toContain('somebody else has used it');
  });

  test('when Throughline is killed and they continue from our turn, our record has nothing of theirs, and the receipt says why', async () => {
    await using home = await ClaudeHome.make(adapter);
    const { cwd, host, tl, session, promptElsewhere } = await startTurn(home);
    // Our Claude still runs. Their entries continue from the last entry that it wrote.
    await host.kill();
    expect((await promptElsewhere()).result.is_error).toBe(false);
    const { reply, receipt } = await tl.conversation('chat').ask(WHICH_CODEWORDS);
    expect(reply).toBe('I have seen these codewords: amber.');
    expect(receipt.sessionId).not.toBe(session?.id);
    expect(receipt.tried).toMatchObject([{ rung: 'resume', sessionId: session?.id }]);
    expect(receipt.tried[0]?.failure).toContain('somebody else has used it');
    const sessions = await tl.engine.sessions('chat');
    expect(sessions.find(({ id }) => id === session?.id)?.state).toBe('diverged');
    const [, turn] = await tl.engine.turns('chat');
    expect(turn && (await ended(tl.engine, turn)).state).toBe('interrupted');
    const { records } = await tl.engine.export('chat');
    const parts = records[1]?.parts.map((part) => (part.type === 'tool' ? part.input : part));
    expect(parts).toEqual([{ command: JSON.parse(WAITING_TOOL.replace(/^.*?(?=\{)/, '')).command }]);
    expect(readFileSync(join(cwd, 'theirs.log'), 'utf8')).toBe('theirs\n');
  });
}
