// Tasks with the real Claude. The stand-in model does only what directives say. They are in the goal and, after a gate that failed, in the
// output of the gate.
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { addUsage, NO_USAGE, type Usage } from '../../../src/core/turn/usage.ts';
import type { Task } from '../../../src/index.ts';
import { conversationOf } from '../../../src/testing/index.ts';
import { allEvents, codewordsIn, until, WHICH_CODEWORDS } from '../../e2e/support/conversations.ts';
import { findClaude, NOT_INSTALLED } from '../support/claude.ts';
import { ClaudeHome } from '../support/claude-home.ts';

const ALLOWED = { permissions: { allow: ['Bash', 'Write', 'Edit'] } };
const write = (file: string, content: string) => `model: tool Write ${JSON.stringify({ file_path: file, content })}`;
const calculator = (divide: string) =>
  `export const add = (a, b) => a + b;\nexport const subtract = (a, b) => a - b;\nexport const divide = (a, b) => ${divide};\n`;

const TIMEOUT_MS = 600_000;

if (findClaude() === null) test('tasks with Claude', (context) => context.skip(NOT_INSTALLED));
else describe('tasks with Claude', { timeout: TIMEOUT_MS }, tasksWithClaude);

function tasksWithClaude(): void {
  test('when the gate fails, Claude gets its output and fixes the fault in the same session', async () => {
    await using home = await ClaudeHome.make('claude-cli', ALLOWED);
    const cwd = home.directory('calculator');
    const file = join(cwd, 'calculator.mjs');
    const fixed = write(file, calculator('{ if (b === 0) throw new RangeError("by zero"); return a / b; }'));
    writeFileSync(
      join(cwd, 'check.mjs'),
      `import assert from 'node:assert/strict';
      import { add, divide, subtract } from './calculator.mjs';
      assert.equal(add(2, 3), 5);
      assert.equal(subtract(2, 3), -1);
      assert.equal(divide(6, 3), 2);
      try { divide(1, 0); } catch { process.exit(0); }
      console.log('divide(1, 0) did not throw');
      console.log(${JSON.stringify(fixed)});
      process.exit(1);`,
    );
    const tl = await home.open();
    const goal = `Write a calculator module.\n${write(file, calculator('a / b'))}`;
    const [task] = await tl.tasks.run({ goal, cwd, gate: 'node check.mjs' });
    expect(task).toMatchObject({ state: 'done', progress: { turns: 2 } });
    const { gates, sessions } = await tl.tasks.report(task?.id ?? '');
    expect(gates.map(({ result }) => result.verdict)).toEqual(['fail', 'pass']);
    expect(sessions).toMatchObject([{ turns: 2, agent: 'claude' }]);
    expect(readFileSync(file, 'utf8')).toContain('RangeError');
    const request = home.model.lastRequest();
    const texts = request ? conversationOf(request).map(({ text }) => text) : [];
    expect(texts.find((text) => text.includes('did not throw'))).toContain('failed: exit code 1');
    expectUsageCounted(home, [task as Task]);
  });

  test('Claude opens the session of a task with the id that its caller chose, and stays in it', async () => {
    await using home = await ClaudeHome.make('claude-cli', ALLOWED);
    const tl = await home.open();
    const newSession = randomUUID();
    const gate = `test -f again || { touch again; echo "The codeword is birch. ${WHICH_CODEWORDS}"; exit 1; }`;
    const [task] = await tl.tasks.run({ goal: 'The codeword is amber.', gate, newSession });
    expect(task).toMatchObject({ state: 'done', newSession, progress: { turns: 2 } });
    const { turns } = await tl.tasks.report(task?.id ?? '');
    expect(turns.map(({ sessionId, rung }) => [sessionId, rung])).toEqual([
      [newSession, 'new'],
      [newSession, 'live'],
    ]);
    const { reply } = await tl.engine.answerOf(turns[1]?.turnId ?? '');
    expect(codewordsIn(reply)).toEqual(['amber', 'birch']);
    await expect(tl.tasks.add({ goal: 'x', newSession })).rejects.toMatchObject({ code: 'refused' });
  });

  test('when Claude has no permission to write, the task asks after one turn and names the setting that allows it', async () => {
    await using home = await ClaudeHome.make('claude-cli');
    const cwd = home.directory('denied');
    const tl = await home.open();
    const goal = `Write it.\n${write(join(cwd, 'a.txt'), 'a')}`;
    const [task] = await tl.tasks.run({ goal, cwd, gate: 'test -f a.txt' });
    expect(task).toMatchObject({
      state: 'asking',
      progress: { turns: 1, denied: 1, decision: { code: 'permission_denied' } },
    });
    expect(task?.progress.decision?.reason).toContain('"permissionMode": "acceptEdits"');
    const { turns } = await tl.tasks.report(task?.id ?? '');
    expect(turns[0]?.denied[0]?.title).toContain('a.txt');
  });

  test('when Claude may not run a command, the task names the setting that allows commands, and with it the task is done', async () => {
    const run = async (options: Parameters<typeof ClaudeHome.make>[3]) => {
      await using home = await ClaudeHome.make('claude-cli', {}, {}, options);
      const cwd = home.directory('denied');
      const goal = `Make it.\nmodel: tool Bash ${JSON.stringify({ command: 'touch made.txt', description: 'Make it' })}`;
      const tl = await home.open();
      const [task] = await tl.tasks.run({ goal, cwd, gate: 'test -f made.txt' });
      return { state: task?.state, reason: task?.progress.decision?.reason ?? '' };
    };
    const denied = await run({});
    expect(denied).toMatchObject({ state: 'asking', reason: expect.not.stringContaining('acceptEdits') });
    const [, options = ''] = /"options": (\{"allowedTools": \[.*?\]\})/.exec(denied.reason) ?? [];
    expect(options, denied.reason).toBe('{"allowedTools": ["Bash"]}');
    expect(await run(JSON.parse(options))).toMatchObject({ state: 'done' });
  });

  test('when the gate fails twice and then passes, Claude has the output of both failures', async () => {
    await using home = await ClaudeHome.make('claude-cli', ALLOWED);
    const cwd = home.directory('csv');
    const file = join(cwd, 'csv.mjs');
    const tool = (split: string) =>
      `import { readFileSync } from 'node:fs';\nconst [head, ...rows] = readFileSync(0, 'utf8').trim().split('\\n').map((line) => ${split});\nconsole.log(JSON.stringify(rows.map((row) => Object.fromEntries(head.map((name, i) => [name, row[i]])))));\n`;
    const unquoted = "line.split(',').map((cell) => cell.replaceAll('\"', ''))";
    const right = '[...line.matchAll(/"([^"]*)"|([^,]+)/g)].map((cell) => cell[1] ?? cell[2])';
    writeFileSync(join(cwd, 'in.csv'), 'name,said\nAnn,hello\nBob,"well, no"\n');
    writeFileSync(
      join(cwd, 'expected'),
      `${JSON.stringify([
        { name: 'Ann', said: 'hello' },
        { name: 'Bob', said: 'well, no' },
      ])}\n`,
    );
    const [second, third] = [write(file, tool(unquoted)), write(file, tool(right))];
    writeFileSync(
      join(cwd, 'check.sh'),
      `node csv.mjs < in.csv > out && diff out expected && exit 0
      n=$(cat tries 2>/dev/null || echo 1); echo $((n + 1)) > tries
      echo "attempt $n is wrong"
      if [ "$n" = 1 ]; then cat <<'NEXT'\n${second}\nNEXT\nelse cat <<'NEXT'\n${third}\nNEXT\nfi; exit 1`,
    );
    const tl = await home.open();
    const goal = `Write a tool that turns CSV into JSON.\n${write(file, tool("line.split(';')"))}`;
    const [task] = await tl.tasks.run({ goal, cwd, gate: 'sh check.sh' });
    expect(task).toMatchObject({ state: 'done', progress: { turns: 3 } });
    const request = home.model.lastRequest();
    const texts = (request ? conversationOf(request) : []).map(({ text }) => text).join('\n');
    expect(texts).toContain('attempt 1 is wrong');
    expect(texts).toContain('attempt 2 is wrong');
    expectUsageCounted(home, [task as Task]);
  });

  test('tasks of a milestone share a conversation, and a task without a milestone has its own', async () => {
    await using home = await ClaudeHome.make('claude-cli', ALLOWED);
    const tl = await home.open();
    const milestone = 'm';
    const tasks = (await tl.tasks.run([
      { goal: 'The codeword is amber.', milestone },
      { goal: 'The codeword is birch.', milestone },
      { goal: WHICH_CODEWORDS, milestone },
      { goal: WHICH_CODEWORDS },
    ])) as Task[];
    const answers = await Promise.all(
      tasks.map(async ({ id }) => {
        const [turn] = (await tl.tasks.report(id)).turns;
        return codewordsIn((await tl.engine.answerOf(turn?.turnId ?? '')).reply);
      }),
    );
    expect(answers.slice(2)).toEqual([['amber', 'birch'], []]);
  });

  test('a token budget that is spent during a turn ends the turn, and its usage is counted', async () => {
    await using home = await ClaudeHome.make('claude-cli', ALLOWED);
    const cwd = home.directory('work');
    const tool = (word: string) => `model: tool Bash ${JSON.stringify({ command: `echo ${word} >> said` })}`;
    // Every request to the model has thousands of tokens: the first one spends the budget, and the second is never answered.
    const goal = [tool('first'), `model: slow ${TIMEOUT_MS}ms`, tool('second')].join('\n');
    const tl = await home.open();
    const [task] = await tl.tasks.run({ goal, cwd, gate: 'true', budget: '500 tokens' });
    expect(task).toMatchObject({ state: 'failed', progress: { turns: 1, decision: { code: 'budget_spent' } } });
    const { turns } = await tl.tasks.report(task?.id ?? '');
    expect(turns).toMatchObject([{ purpose: 'work', outcome: 'cancelled' }]);
    expect(readFileSync(join(cwd, 'said'), 'utf8')).toBe('first\n');
    expectUsageCounted(home, [task as Task]);
  });

  test('with Claude as the gate, a task is done, failed or asking, as the verdict says', async () => {
    await using home = await ClaudeHome.make('claude-cli', ALLOWED);
    const cwd = home.directory('work');
    const verdict = (what: string, reason: string) => `model: say ${JSON.stringify({ verdict: what, reason })}`;
    const tl = await home.open();
    const gate = (ask: string) => ({ agent: 'claude', ask });
    const failing = { goal: 'Write.', cwd, gate: gate(verdict('fail', 'The sum is wrong.')), maxIterations: 2 };
    const asking = { goal: 'Write.', cwd, gate: gate(verdict('ask', 'Is blue allowed?')) };
    const passing = { goal: 'Write.', cwd, gate: gate(verdict('pass', 'All is there.')) };
    const [failed, asks, passed] = (await tl.tasks.run([failing, asking, passing])) as Task[];
    expect(failed).toMatchObject({ state: 'failed', progress: { turns: 4, decision: { code: 'iterations_spent' } } });
    const prompts = await tl.engine.turns(`task/${failed?.id}`);
    expect(JSON.stringify(prompts[1]?.prompt)).toContain('failed: The sum is wrong.');
    expect(asks).toMatchObject({ state: 'asking', progress: { decision: { reason: 'Is blue allowed?' } } });
    expect(passed).toMatchObject({ state: 'done', progress: { turns: 2, decision: { code: 'gate_passed' } } });
    expectUsageCounted(home, [failed, asks, passed] as Task[]);
  });

  test.each([
    [10, 'one after another', ['word-5'], 1],
    [10, 'at the same time', ['word-6', 'word-7', 'word-8', 'word-9', 'word-10'], 5],
  ] as const)(
    '%i tasks %s, with a SIGKILL of the server during %j: every task is done, in its own session, and all usage is counted',
    async (...[count, , slow, parallel]) => {
      await using home = await ClaudeHome.make('claude-cli', ALLOWED);
      // By default the memory of the machine limits the parallel turns. With little memory the fifth slow task would never start.
      home.settings = { ...home.settings, turns: { parallel: 8, perOwner: 8 } };
      const names = Array.from({ length: count }, (_, i) => `word-${i + 1}`);
      // A slow task gets no first answer, because the server is killed before. A request without an answer costs nothing.
      const tasks = names.map((name) => ({
        name,
        goal: `The codeword is ${name}. ${WHICH_CODEWORDS}${slow.some((one) => one === name) ? `\nmodel: slow ${NEVER_MS}ms 1 times #${name}` : ''}`,
        gate: 'true',
        retryInterrupted: 2,
      }));
      const first = await home.serve();
      await first.tl.tasks.add({ parallel, tasks });
      const hasRequest = (name: string) =>
        home.model.requests.some((request) => !request.side && isAbout(request, name));
      await until('the model has a request of each slow task', () => slow.every(hasRequest), TIMEOUT_MS / 2).catch(
        async ({ message }: Error) => {
          throw new Error(`${message}; ${await describeTasks(first.tl)}`);
        },
      );
      await first.kill();
      const { tl: second } = await home.serve();
      const done = (await second.tasks.waitFor(names)) as Task[];
      expect(done.map(({ name, state }) => [name, state])).toEqual(names.map((name) => [name, 'done']));
      const reports = await Promise.all(names.map((name) => second.tasks.report(name)));
      const sessions = reports.flatMap(({ turns }) => [...new Set(turns.map(({ sessionId }) => sessionId))]);
      expect(sessions).not.toContain(null);
      expect(new Set(sessions).size).toBe(sessions.length);
      for (const [i, { turns, task }] of reports.entries()) {
        const [last, ...before] = turns.map(({ outcome }) => outcome).toReversed();
        expect([last, ...new Set(before)]).toEqual(before.length === 0 ? ['completed'] : ['completed', 'interrupted']);
        expect(JSON.stringify(turns)).not.toMatch(/not found/i);
        expect(codewordsIn((await second.engine.answerOf(turns.at(-1)?.turnId ?? '')).reply)).toEqual([names[i]]);
        // No session is left over: every stored session belongs to a turn.
        const lineage = await second.engine.sessions(`task/${task.id}`);
        expect(lineage.filter((session) => !sessions.includes(session.id))).toEqual([]);
      }
      expect(reports.some(({ turns }) => turns.length > 1)).toBe(true);
      expectUsageCounted(home, done);
    },
  );
}

const NEVER_MS = 3_600_000;

/** For error messages: the state of each task, with its events except updates. */
async function describeTasks({ tasks, engine }: Awaited<ReturnType<ClaudeHome['serve']>>['tl']): Promise<string> {
  const all = await tasks.list();
  const lines = all.map(async ({ id, name, state }) => {
    const events = state === 'queued' ? [] : await allEvents(engine, `task/${id}`);
    const kinds = events.flatMap((event) => {
      if (event.kind === 'turn.ended') return `turn.ended: ${event.payload.failure?.message ?? event.payload.outcome}`;
      return event.kind === 'turn.update' ? [] : event.kind;
    });
    return `${name} is ${state} (${kinds.join(', ')})`;
  });
  return (await Promise.all(lines)).join('; ');
}

const isAbout = (request: Parameters<typeof conversationOf>[0], name: string) =>
  conversationOf(request).some(({ text }) => text.includes(`codeword is ${name}.`));

const spentBy = (tasks: readonly Task[]) =>
  tasks.reduce((sum, { progress }) => addUsage(sum, progress.spent), NO_USAGE);

/** The tasks report exactly the tokens that the stand-in model has served. */
function expectUsageCounted({ model }: ClaudeHome, tasks: readonly Task[]): void {
  const served = model.requests.flatMap(({ answer }) => (answer?.usage ? [answer.usage] : []));
  const sum = served.reduce<Usage>((total, usage) => addUsage(total, usage), NO_USAGE);
  const { inputTokens, outputTokens } = spentBy(tasks);
  expect({ inputTokens, outputTokens }).toEqual({ inputTokens: sum.inputTokens, outputTokens: sum.outputTokens });
}
