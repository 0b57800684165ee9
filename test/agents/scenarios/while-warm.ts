// What happens to Claude and its files while its process waits for the next turn.
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { conversationOf } from '../../../src/testing/index.ts';
import { until } from '../../contracts/agent-sandbox.ts';
import { type InstalledClaude, runClaude } from '../claude.ts';
import {
  bash,
  type ClaudeAdapter,
  ClaudeHome,
  codeword,
  FIRST,
  FOURTH,
  SECOND,
  THIRD,
  threeTurns,
} from '../claude-home.ts';

export function whileWarm(adapter: ClaudeAdapter, claude: InstalledClaude): void {
  test('when somebody resumes the session while it is warm, it is not used again, and nothing of theirs is used', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const cwd = home.directory('work');
    await threeTurns(tl, 'chat', cwd);
    const id = (await tl.engine.sessions('chat'))[0]?.id ?? '';
    await runClaude(claude, ['--resume', id, codeword('foreign')], { cwd, env: home.env });
    const { receipt } = await tl.conversation('chat').ask(FOURTH);
    home.expectTold(FIRST, SECOND, THIRD, FOURTH);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 3, proof: 'proved' });
    expect((await tl.engine.sessions('chat')).find((one) => one.id === id)?.state).toBe('diverged');
  });

  test('files that are deleted while it is warm are written back', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    await threeTurns(tl);
    rmSync(join(home.config, 'projects'), { recursive: true, maxRetries: 5 });
    const { receipt } = await tl.conversation('chat').ask(FOURTH);
    home.expectTold(FIRST, SECOND, THIRD, FOURTH);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 3, proof: 'proved' });
  });

  test('when its files are deleted during a turn, nothing counts as proved, and the context is restored', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const cwd = home.directory('work');
    const chat = tl.conversation('chat', { cwd });
    await chat.ask(FIRST);
    writeFileSync(join(cwd, 'hold'), '');
    const asked = chat.ask(`${bash('touch begun; while [ -e hold ]; do sleep 0.1; done')}\n${SECOND}`);
    await until('the tool runs', () => existsSync(join(cwd, 'begun')));
    await home.callWritten();
    rmSync(join(home.config, 'projects'), { recursive: true, maxRetries: 5 });
    rmSync(join(cwd, 'hold'));
    expect((await asked).receipt.proof).not.toBe('proved');
    await tl.close();
    const { receipt } = await (await home.open()).conversation('chat').ask(THIRD);
    expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 2, proof: 'proved' });
    const request = home.model.lastRequest();
    const told = JSON.stringify(request && conversationOf(request));
    for (const prompt of [FIRST, SECOND, THIRD]) expect(told).toContain(prompt);
  });

  test('with a home in the sandbox nothing is kept in the user’s own', async () => {
    await using home = await ClaudeHome.make(adapter, {}, {}, { home: 'sandbox' });
    const tl = await home.open();
    await threeTurns(tl);
    await tl.close();
    const { receipt } = await (await home.open()).conversation('chat').ask(FOURTH);
    home.expectTold(FIRST, SECOND, THIRD, FOURTH);
    expect(receipt).toMatchObject({ rung: 'resume', proof: 'proved' });
    expect(existsSync(join(home.config, 'projects'))).toBe(false);
  });
}
