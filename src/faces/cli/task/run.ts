import { type Command, Option } from 'commander';
import { ThroughlineError } from '../../../core/errors.ts';
import { SESSION_MODES } from '../../../core/tasks/task.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { positiveNumber, wholeNumber } from '../option-values.ts';
import { holdStopSignals } from '../stop-signals.ts';
import { watchTasks } from './watch.ts';

interface RunFlags {
  readonly file?: string;
  readonly requestId?: string;
  readonly parallel?: number;
  readonly [ofTask: string]: unknown;
}

export function defineRun(task: Command, cli: Cli): void {
  const command = task
    .command('run')
    .summary('work on a goal, on a task file, or on what is left over')
    .description('Work on a goal, on a task file, or, without either, go on with what is left over.')
    .argument('[goal]', 'what is to be reached; - reads it from stdin')
    .option('--file <yaml>', 'a task file')
    .option('--gate <command>', "judges after each turn by its exit code; run in the task's directory")
    .option('--judge <agent>', 'an agent judges instead')
    .option('--ask <text>', 'what the judge judges by')
    .option('--gate-timeout <seconds>', 'how long the command may take', positiveNumber)
    .option('--name <name>', 'how you will call it')
    .option('--milestone <name>', 'share the conversation of this milestone')
    .option('--agent <name>', 'who works on it; else the default agent')
    .option('--max-iterations <n>', 'give up after so many turns; else 10', positiveNumber)
    .option('--budget <amount>', "begin no turn once so much is spent: '2 USD' or '50000 tokens'")
    .addOption(
      new Option('--sessions <mode>', 'kept: one session for all turns; fresh: one a turn').choices(SESSION_MODES),
    )
    .option('--session <id>', "go on in this session of the agent's own, or ask")
    .option('--retry-interrupted <n>', 'try a turn that was interrupted again so often; else ask', wholeNumber)
    .option('--cwd <dir>', 'where to work; else a directory of its own')
    .addOption(
      new Option('--permissions <mode>', 'when the agent asks: wait for an answer, or deny').choices(['ask', 'deny']),
    )
    .option('--parallel <n>', 'at most so many tasks of the file at once', positiveNumber)
    .option('--request-id <id>', 'the same id and tasks again are the same tasks: safe to repeat')
    .action((goal: string | undefined, flags: RunFlags) => run(goal, flags, cli));
  command.addHelpText(
    'after',
    '\nWhat happens is told on stderr, how each task ended on stdout. With --json every event of the tasks is a line, and the\n' +
      'last line is {"kind":"result", "tasks"}. Ctrl-C cancels; SIGTERM leaves what is not done to the\n' +
      'server, or to the next "task run".\n' +
      'Exit code 0: all are done; 1: one has failed or asks a person; 7: one was interrupted; 130: one was cancelled.',
  );
  addExamples(
    command,
    `throughline task run "Make the tests pass" --gate 'npm test' --cwd . --budget '2 USD'`,
    'throughline task run "Write a guide" --judge claude --ask "A newcomer can follow it"',
    'throughline task run --file tasks.yaml --json',
    'throughline task run',
  );
}

async function run(goal: string | undefined, flags: RunFlags, cli: Cli): Promise<void> {
  if (goal !== undefined && flags.file !== undefined) {
    throw new ThroughlineError('invalid', 'Give a goal or a file, not both.', {
      hint: 'A goal can stand in the file.',
    });
  }
  const given = goal === undefined ? null : await taskOf(goal, flags);
  if (given === null) refuseOfTask(flags);
  refuseOfPlan(goal, flags);
  await cli.withTasks(async (desk) => {
    const { tasks, readFile } = desk;
    const after = await tasks.lastSeq();
    const { requestId, parallel, file } = flags;
    const once = requestId === undefined ? {} : { requestId };
    holdStopSignals(cli.output);
    if (given === null && file === undefined) {
      const left = await tasks.resume();
      if (left.length > 0) return watchTasks(desk, left, after, cli);
      cli.output.note('Nothing is left over.');
      if (cli.output.json) cli.output.value({ kind: 'result', tasks: [] });
      return DONE;
    }
    const { plan, ...where } = file === undefined ? { plan: { tasks: [given] } } : readFile(file);
    const whole = parallel === undefined ? plan : withParallel(plan, parallel);
    const added = await tasks.add(whole, { ...once, ...where, ...(file === undefined && { locate: () => '' }) });
    if (added.duplicate) cli.output.note('This request was accepted before; these are its tasks.');
    return watchTasks(desk, added.tasks, after, cli);
  });
}

const OF_TASK = [
  'name',
  'milestone',
  'agent',
  'maxIterations',
  'budget',
  'sessions',
  'session',
  'retryInterrupted',
  'cwd',
  'permissions',
];
const OF_GATE = ['gate', 'judge', 'ask', 'gateTimeout'];

async function taskOf(goal: string, flags: RunFlags): Promise<object> {
  const text = goal === '-' ? await (await import('../read-input.ts')).readPrompt() : goal;
  const set = Object.fromEntries(OF_TASK.flatMap((name) => (flags[name] === undefined ? [] : [[name, flags[name]]])));
  return { goal: text, ...set, ...gateOf(flags) };
}

function gateOf({ gate, judge, ask, gateTimeout }: RunFlags): object {
  const fault = (message: string, hint: string) => new ThroughlineError('invalid', message, { hint });
  if (gate !== undefined && judge !== undefined) {
    throw fault('Give a gate or a judge, not both.', 'A command can be a part of what the judge is asked.');
  }
  if (judge === undefined && ask !== undefined)
    throw fault('"--ask" goes with "--judge".', 'Name the agent that judges.');
  if (gate === undefined && gateTimeout !== undefined) {
    throw fault('"--gate-timeout" goes with "--gate".', 'Give the command that it is for, or leave it out.');
  }
  if (judge !== undefined) return { gate: { agent: judge, ...(ask !== undefined && { ask }) } };
  return gate === undefined
    ? {}
    : { gate: { command: gate, ...(gateTimeout !== undefined && { timeout: gateTimeout }) } };
}

/** What is set and would be used for nothing is refused, never ignored. */
function refuseOfTask(flags: RunFlags): void {
  const [name] = [...OF_TASK, ...OF_GATE].filter((one) => flags[one] !== undefined);
  if (name === undefined) return;
  const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new ThroughlineError('invalid', `"--${flag}" goes with a goal.`, { hint: 'In a file, set it there.' });
}

function refuseOfPlan(goal: string | undefined, { file, parallel, requestId }: RunFlags): void {
  if (parallel !== undefined && file === undefined) {
    throw new ThroughlineError('invalid', '"--parallel" goes with "--file": it is how many of its tasks run at once.', {
      hint: 'For all tasks of a data home it is the setting "tasks.parallel".',
    });
  }
  if (requestId !== undefined && goal === undefined && file === undefined) {
    throw new ThroughlineError('invalid', '"--request-id" goes with a goal or a file.', {
      hint: 'Without either, "task run" goes on with what is left over.',
    });
  }
}

function withParallel(plan: unknown, parallel: number): unknown {
  if (Array.isArray(plan)) return { tasks: plan, parallel };
  const isPlan = typeof plan === 'object' && plan !== null && 'tasks' in plan;
  return isPlan ? { ...plan, parallel } : { tasks: [plan], parallel };
}
