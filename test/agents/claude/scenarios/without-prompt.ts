// Claude acts, or could act, without a prompt.
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { isAlive } from '../../../contracts/liveness.ts';
import { allEvents, until } from '../../../e2e/support/conversations.ts';
import { storedSessions } from '../../../e2e/support/stored.ts';
import { ALLOW_BASH, type ClaudeAdapter, ClaudeHome, FIRST, SECOND, THIRD } from '../../support/claude-home.ts';

/** A prompt: Claude runs the command in the background. */
const inBackground = (command: string) =>
  `model: tool! Bash ${JSON.stringify({ command, run_in_background: true })}\nmodel: say It runs.`;

export function withoutPrompt(adapter: ClaudeAdapter): void {
  test('Claude runs nothing in the background, and has no tool that starts it later or asks questions', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const { reply } = await tl.conversation('chat').ask(inBackground('echo no'));
    expect(reply).toBe('It runs.');
    const request = home.model.lastRequest();
    const [result] = request?.messages.at(-1)?.toolResults ?? [];
    expect(result).toMatchObject({ isError: true, text: expect.stringContaining('run_in_background') });
    expect(JSON.stringify(request?.raw)).not.toMatch(/Monitor|ScheduleWakeup|CronCreate|AskUserQuestion/);
  });

  test('with background tasks enabled, Claude is ended as soon as it works without a prompt', async () => {
    const env = { CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '0' };
    await using home = await ClaudeHome.make(adapter, ALLOW_BASH, env);
    const tl = await home.open();
    const cwd = home.directory('work');
    const chat = tl.conversation('chat', { cwd });
    await chat.ask(FIRST);
    await chat.ask(inBackground('until [ -e go ]; do sleep 0.1; done'));
    const pid = storedSessions(home)[0]?.process?.pid ?? expect.unreachable();
    writeFileSync(join(cwd, 'go'), '');
    await until('Claude has ended', () => !isAlive(pid));
    const { reply, receipt } = await chat.ask('Which codewords have you seen?');
    expect(reply).toContain('amber');
    expect(receipt).toMatchObject({ carried: 2, dropped: 0, proof: 'proved' });
    // It depends on the timing how much Claude had written by then. So its session is resumed or rewritten.
    expect(['resume', 'rehydrate']).toContain(receipt.rung);
    expect((await tl.engine.sessions('chat'))[0]).toMatchObject({ id: receipt.sessionId, state: 'live' });
  });

  test('what Claude did without a prompt is reported, and does not count as a use by somebody else', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    for (const prompt of [FIRST, SECOND]) await tl.conversation('chat').ask(prompt);
    const [session] = await tl.engine.sessions('chat');
    await tl.close();
    appendUnpromptedTurn(home.transcripts()[0] ?? '', storedSessions(home)[0]?.position ?? '');
    const again = await home.open();
    const { reply, receipt } = await again.conversation('chat').ask('Which codewords have you seen?');
    expect(receipt).toMatchObject({ rung: 'resume', sessionId: session?.id, unsettled: true, proof: 'proved' });
    expect(reply).toContain('woken');
    expect(JSON.stringify(await allEvents(again.engine, 'chat'))).toContain(
      'it continued after its last turn without a prompt; these tools ran: Bash',
    );
    await again.conversation('chat').ask(THIRD);
    expect((await again.engine.sessions('chat')).map(({ state }) => state)).toEqual(['live']);
  });

  test('Claude’s memory of a directory is not used by the conversations in it', async () => {
    await using home = await ClaudeHome.make(adapter);
    const tl = await home.open();
    const cwd = home.directory('work');
    await tl.conversation('one', { cwd }).ask(FIRST);
    const memory = join(dirname(home.transcripts()[0] ?? ''), 'memory');
    mkdirSync(memory, { recursive: true });
    writeFileSync(join(memory, 'MEMORY.md'), '- [Trees](trees.md): the magic word is sequoia\n');
    await tl.conversation('two', { cwd }).ask(SECOND);
    expect(JSON.stringify(home.model.requests.map(({ raw }) => raw))).not.toContain('sequoia');
    expect(readFileSync(join(memory, 'MEMORY.md'), 'utf8')).toContain('sequoia');
  });
}

/** Appends the lines that Claude writes when a background task has ended: a notification, and what Claude does then. */
function appendUnpromptedTurn(file: string, position: string): void {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  const last = lines.map((line) => JSON.parse(line)).findLast(({ type }) => type === 'assistant');
  const leaf = position.replace(/^\d+:/, '');
  const { sessionId, cwd, version, message } = last;
  const common = {
    isSidechain: false,
    userType: 'external',
    timestamp: new Date().toISOString(),
    sessionId,
    cwd,
    version,
  };
  const [notification, call, result] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()];
  const promptId = crypto.randomUUID();
  const content = '<task-notification><status>completed</status></task-notification>';
  const entries = [
    {
      type: 'user',
      uuid: notification,
      parentUuid: leaf,
      promptId,
      promptSource: 'system',
      message: { role: 'user', content },
    },
    {
      type: 'assistant',
      uuid: call,
      parentUuid: notification,
      message: {
        ...message,
        id: 'msg_woken',
        content: [{ type: 'tool_use', id: 'toolu_woken', name: 'Bash', input: { command: 'true' } }],
        stop_reason: 'tool_use',
      },
    },
    {
      type: 'user',
      uuid: result,
      parentUuid: call,
      promptId,
      message: {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'toolu_woken', content: 'The codeword is woken.' }],
      },
    },
    {
      type: 'assistant',
      uuid: crypto.randomUUID(),
      parentUuid: result,
      message: { ...message, id: 'msg_woken_2', content: [{ type: 'text', text: 'Done.' }] },
    },
  ];
  appendFileSync(file, entries.map((entry) => `${JSON.stringify({ ...common, ...entry })}\n`).join(''));
}
