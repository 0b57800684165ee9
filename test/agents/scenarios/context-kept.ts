// What happens to Claude and its files between two turns.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { conversationOf } from '../../../src/testing/index.ts';
import { killAgent, storedSessions } from '../../e2e/support/stored.ts';
import { type InstalledClaude, runClaude } from '../claude.ts';
import {
  type ClaudeAdapter,
  ClaudeHome,
  codeword,
  FIRST,
  FOURTH,
  SECOND,
  THIRD,
  threeTurns,
  told,
} from '../claude-home.ts';

export function contextKept(adapter: ClaudeAdapter, claude: InstalledClaude): void {
  test('after a kill and a restart the fourth request has the first three, in order', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    await threeTurns(tl);
    const [session] = await tl.engine.sessions('chat');
    killAgent(home);
    await tl.close();
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask(FOURTH);
    home.expectTold(FIRST, SECOND, THIRD, FOURTH);
    expect(receipt).toMatchObject({ rung: 'resume', carried: 3, dropped: 0, modelCalls: 0, proof: 'proved' });
    expect(receipt.sessionId).toBe(session?.id);
  });

  test('deleted files are written back byte for byte, also when Throughline is started from elsewhere', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    await threeTurns(tl);
    const copied = storedSessions(home)[0]?.mirrored ?? 0;
    await tl.close();
    const [file = ''] = home.transcripts();
    const before = readFileSync(file);
    rmSync(join(home.config, 'projects'), { recursive: true });
    const here = process.cwd();
    process.chdir(home.directory('elsewhere'));
    try {
      const again = await home.open();
      const { receipt } = await again.conversation('chat').ask(FOURTH);
      expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 3, dropped: 0, modelCalls: 0, proof: 'proved' });
      const [written, prompt] = (await again.conversation('chat').told()).parts;
      expect(written).toMatchObject({ as: 'transcript', text: before.subarray(0, copied).toString() });
      expect(prompt).toMatchObject({ as: 'prompt', turn: 4, content: [{ type: 'text', text: FOURTH }] });
    } finally {
      process.chdir(here);
    }
    home.expectTold(FIRST, SECOND, THIRD, FOURTH);
    // What Claude writes as its process ends comes after our copy was made, and is no part of the conversation.
    expect(copied).toBeGreaterThan(before.length / 2);
    expect(readFileSync(file).subarray(0, copied).equals(before.subarray(0, copied))).toBe(true);
  });

  test('forks are independent, also in another directory: each has only its own codewords', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    await threeTurns(tl);
    await tl.engine.fork('chat', { turn: 2, key: 'fork', cwd: home.directory('other') });
    const { receipt } = await tl.conversation('fork').ask(FOURTH);
    home.expectTold(FIRST, SECOND, FOURTH);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 2, dropped: 0, modelCalls: 0, proof: 'proved' });
    await tl.conversation('chat').ask('Go on.');
    home.expectTold(FIRST, SECOND, THIRD, 'Go on.');
    await tl.conversation('fork').ask('Go on.');
    home.expectTold(FIRST, SECOND, FOURTH, 'Go on.');
  });

  test('ten prompts at once from two processes: each request has all that came before it', async () => {
    await using home = await ClaudeHome.make(adapter);
    const hosts = await Promise.all([home.host(), home.host()]);
    const words = Array.from({ length: 10 }, (_, i) => codeword(`word-${i + 1}`));
    await Promise.all(words.map((word, i) => hosts[i % 2]?.calls.ask('chat', word)));
    const requests = home.model.requests.filter(({ side }) => !side).map((request) => conversationOf(request));
    expect(requests).toHaveLength(10);
    const order = requests.map((said) => said.at(-1)?.text ?? '');
    expect(order.toSorted()).toEqual(words.toSorted());
    for (const [k, said] of requests.entries()) expect(said).toEqual(told(order.slice(0, k + 1)));
  });

  test('a damaged transcript is not resumed, and the context comes from our records', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    await threeTurns(tl);
    await tl.close();
    const [file = ''] = home.transcripts();
    const lines = readFileSync(file, 'utf8').split('\n');
    const at = lines.findIndex((line) => line.includes('"type":"user"') && line.includes('birch'));
    lines[at] = lines[at]?.slice(0, -20) ?? '';
    writeFileSync(file, lines.join('\n'));
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask(FOURTH);
    home.expectTold(FIRST, SECOND, THIRD, FOURTH);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 3, dropped: 0, proof: 'proved' });
    expect(receipt.tried).toMatchObject([{ rung: 'resume' }]);
  });

  test('a transcript with an edited line is not resumed, though its position is the same', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    await threeTurns(tl);
    const [session] = await tl.engine.sessions('chat');
    await tl.close();
    const [file = ''] = home.transcripts();
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('birch', 'FORGED'));
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask(FOURTH);
    home.expectTold(FIRST, SECOND, THIRD, FOURTH);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 3, dropped: 0, proof: 'proved' });
    expect(receipt.tried).toMatchObject([{ rung: 'resume', sessionId: session?.id }]);
    expect(receipt.tried[0]?.failure).toContain('its transcript was changed');
    expect((await again.engine.sessions('chat')).find(({ id }) => id === session?.id)?.state).toBe('diverged');
  });

  test('when somebody resumes the session between two turns, it is diverged, and nothing of theirs is used', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const cwd = home.directory('work');
    await threeTurns(tl, 'chat', cwd);
    await tl.close();
    const id = (await (await home.open()).engine.sessions('chat'))[0]?.id ?? '';
    const run = await runClaude(claude, ['--resume', id, codeword('foreign')], { cwd, env: home.env });
    expect(run.result.is_error).toBe(false);
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask(FOURTH);
    home.expectTold(FIRST, SECOND, THIRD, FOURTH);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 3, proof: 'proved' });
    expect((await again.engine.sessions('chat')).find((one) => one.id === id)?.state).toBe('diverged');
  });
}
