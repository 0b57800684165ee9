import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { tokensOf } from '../../../../src/core/limits/budget.ts';
import { NO_USAGE } from '../../../../src/core/turn/usage.ts';
import { systemProcesses } from '../../../../src/host/processes.ts';
import { conversationOf } from '../../../../src/testing/index.ts';
import { until } from '../../../contracts/agent-sandbox.ts';
import { isAlive } from '../../../contracts/liveness.ts';
import { ended, hasStoredUpdate } from '../../../e2e/support/conversations.ts';
import { killAgent, sentTo } from '../../../e2e/support/stored.ts';
import { bash, type ClaudeAdapter, ClaudeHome, FIRST } from '../../support/claude-home.ts';

export function crashes(adapter: ClaudeAdapter): void {
  test('after a kill of Throughline during a tool the turn is interrupted, the tool does not run again, and the next turn says so', async () => {
    await using home = await ClaudeHome.make(adapter);
    const cwd = home.directory('work');
    const effects = join(cwd, 'effects.log');
    const host = await home.host();
    await host.calls.ask('chat', FIRST, { cwd });
    // The host is killed before it can answer.
    const unanswered = host.calls.ask('chat', bash('echo line >> effects.log; sleep 60; echo late >> effects.log'));
    unanswered.catch(() => {});
    await until('the tool runs', () => existsSync(effects));
    await until('its call is stored', () => hasStoredUpdate(host.engine, 'chat', 'effects.log'));
    await home.toolCallWritten();
    await host.kill();
    const tl = await home.open();
    const { reply, receipt } = await tl.conversation('chat').ask('Which codewords have you seen?');
    expect(reply).toContain('amber');
    expect(receipt).toMatchObject({ carried: 2, dropped: 0, unsettled: true, proof: 'proved' });
    expect((await tl.engine.turns('chat')).map((turn) => turn.state)).toEqual([
      'completed',
      'interrupted',
      'completed',
    ]);
    const request = home.model.lastRequest();
    expect(JSON.stringify(request && conversationOf(request))).toMatch(/\[turn 2\] tool Bash\b.*: unknown/);
    expect(readFileSync(effects, 'utf8')).toBe('line\n');
    const cutOff = (await tl.engine.turns('chat'))[1]?.usage ?? NO_USAGE;
    expect(cutOff).toMatchObject({ modelCalls: 1, costMicros: 0, unknownCosts: 1 });
    expect(tokensOf(cutOff)).toBeGreaterThan(0);
  });

  test('when Throughline is killed and Claude finishes its answer, the turn is completed, and the session has it', async () => {
    await using home = await ClaudeHome.make(adapter);
    home.settings = { ...home.settings, limits: { conversationPerDay: '50 USD', ownerPerDay: '50 USD' } };
    const cwd = home.directory('work');
    const host = await home.host();
    await host.calls.ask('chat', FIRST, { cwd });
    const prompt = [
      bash('echo begun >> effects.log; while [ ! -e go ]; do sleep 0.1; done; echo ended >> effects.log'),
      'model: say Between.',
      bash('echo again >> effects.log'),
      'model: say The codeword is birch.',
    ].join('\n');
    host.calls.ask('chat', prompt).catch(() => {}); // the host is killed before it can answer
    await until('the tool runs', () => existsSync(join(cwd, 'effects.log')));
    await host.kill();
    writeFileSync(join(cwd, 'go'), '');
    await until('Claude has written the end of its answer', () =>
      home.transcripts().some((file) => readFileSync(file, 'utf8').includes('"text":"The codeword is birch."')),
    );
    const tl = await home.open();
    const { reply, receipt } = await tl.conversation('chat').ask('Which codewords have you seen?');
    const [, turn] = await tl.engine.turns('chat');
    expect(turn).toMatchObject({ state: 'completed', recovered: true, failure: null, attempt: 1 });
    // Its cost is only in the output that nobody read. Unknown, it did not refuse the next turn.
    expect(turn?.usage).toMatchObject({ modelCalls: 3, costMicros: 0, unknownCosts: 1 });
    expect(tokensOf(turn?.usage ?? NO_USAGE)).toBeGreaterThan(0);
    const { usage } = await tl.conversation('chat').summary();
    expect(usage).toMatchObject({ costMicros: expect.any(Number), unknownCosts: 1 });
    expect((await tl.engine.answerOf(turn?.id ?? '')).reply).toBe('Between.\n\nThe codeword is birch.');
    const { records } = await tl.engine.export('chat');
    expect(records[1]).toMatchObject({
      recovered: true,
      parts: [
        { type: 'tool', name: 'Bash', status: 'completed' },
        { type: 'text', text: 'Between.' },
        { type: 'tool', name: 'Bash', status: 'completed' },
        { type: 'text', text: 'The codeword is birch.' },
      ],
    });
    // The session has the turn, so nothing is delivered again.
    expect(receipt).toMatchObject({ rung: 'resume', carried: 2, delivered: 0, unsettled: false, proof: 'proved' });
    expect(reply).toContain('amber, birch');
    expect(readFileSync(join(cwd, 'effects.log'), 'utf8')).toBe('begun\nended\nagain\n');
  });

  test('when Claude is killed during a tool, the tool ends with it, and the turn is interrupted with the reason', async () => {
    await using home = await ClaudeHome.make(adapter);
    const cwd = home.directory('work');
    const tl = await home.open();
    const chat = tl.conversation('chat', { cwd });
    await chat.ask(FIRST);
    const { turn } = await chat.send(bash('echo $$ > pid; echo line >> effects.log; sleep 600')).accepted;
    await until('the tool runs', () => existsSync(join(cwd, 'effects.log')));
    await until('its call is stored', () => hasStoredUpdate(tl.engine, 'chat', 'effects.log'));
    const [session] = await tl.engine.sessions('chat');
    await home.toolCallWritten();
    killAgent(home);
    const { state, failure, usage } = await ended(tl.engine, turn);
    expect(usage).toMatchObject({ modelCalls: 1, costMicros: 0, unknownCosts: 1 });
    expect(tokensOf(usage)).toBeGreaterThan(0);
    expect({ state, message: failure?.message }).toEqual({
      state: 'interrupted',
      message: 'Claude’s process ended by SIGKILL.',
    });
    const tool = Number(readFileSync(join(cwd, 'pid'), 'utf8'));
    await until('the tool has ended', () => !isAlive(tool));
    const { receipt } = await chat.ask('Which codewords have you seen?');
    expect(receipt).toMatchObject({ rung: 'resume', sessionId: session?.id, unsettled: true, proof: 'proved' });
    const request = home.model.lastRequest();
    expect(JSON.stringify(request && conversationOf(request))).toMatch(/\[turn 2\] tool Bash\b.*: unknown/);
    expect(readFileSync(join(cwd, 'effects.log'), 'utf8')).toBe('line\n');
  });

  test('when Throughline is killed while Claude is warm, the next process ends Claude before any prompt', async () => {
    await using home = await ClaudeHome.make(adapter);
    const host = await home.host();
    const { turn } = await host.calls.ask('chat', FIRST);
    const claude = sentTo(home, turn.id);
    const { pid } = claude;
    onTestFinished(async () => void (await systemProcesses.end(claude)));
    // A running Claude ends when its input is closed. A stopped one does not.
    process.kill(pid, 'SIGSTOP');
    await host.kill();
    expect(isAlive(pid)).toBe(true);
    await home.open();
    await until('Claude has ended', () => !isAlive(pid));
  });

  test('a replay calls the model once for each turn and runs no tool; after it tools run again', async (context) => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    if (!(await tl.engine.agents())[0]?.traits?.noTools)
      context.skip('this Claude has no proved profile without tools');
    const cwd = home.directory('work');
    const effects = join(cwd, 'effects.log');
    const chat = tl.conversation('chat', { cwd });
    await chat.ask(FIRST);
    await chat.ask(bash('echo line >> effects.log'));
    const before = home.model.requests.filter(({ side }) => !side).length;
    const { receipt, reply } = await chat.ask('Which codewords have you seen?', {
      restore: { rebuild: true, rung: 'replay' },
    });
    expect(receipt).toMatchObject({ rung: 'replay', modelCalls: 2, carried: 2, toolsRan: [] });
    expect(home.model.requests.filter(({ side }) => !side).length - before).toBe(3);
    expect(reply).toContain('amber');
    expect(readFileSync(effects, 'utf8')).toBe('line\n');
    await chat.ask(bash('echo line >> effects.log'));
    expect(readFileSync(effects, 'utf8')).toBe('line\nline\n');
  });
}
