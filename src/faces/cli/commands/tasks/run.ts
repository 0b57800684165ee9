import { type Command, Option } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { given } from '../../../../core/input/arguments.ts';
import { SESSION_MODES } from '../../../../core/tasks/task.ts';
import type { TaskPlan } from '../../../../core/tasks/task-plan.ts';
import { PERMISSION_MODES } from '../../../../core/turn/turn.ts';
import type { RetryOptions } from '../../../../ports/tasks.ts';
import { type Cli, subcommand } from '../../cli.ts';
import { DONE } from '../../exit-codes.ts';
import { positiveNumber, readPrompt, wholeNumber } from '../../input.ts';
import type { Output } from '../../output.ts';
import { holdStopSignals } from '../../stop-signals.ts';
import { watchTasks } from './watch.ts';

interface RunFlags {
  readonly file?: string;
  readonly requestId?: string;
  readonly parallel?: number;
  readonly [ofTask: string]: unknown;
}

export function defineRun(task: Command, cli: Cli): void {
  subcommand(task, 'run', {
    summary: 'work on a goal or on a task file, or continue unfinished tasks',
    description: 'Work on a goal or on a task file. Without either, continue unfinished tasks.',
    about:
      'Progress goes to stderr, and how each task ended to stdout. With --json, every event of the tasks is one line, and the ' +
      'last line is {"kind":"result", "tasks"}. Ctrl-C cancels. SIGTERM leaves unfinished tasks to the server, or to the next ' +
      '"throughline task run".\n' +
      'Exit code 0: all are done; 1: one has failed or asks a person; 7: one was interrupted; 130: one was cancelled.',
    examples: [
      `throughline task run "Make the tests pass" --gate 'npm test' --cwd . --budget '2 USD'`,
      'throughline task run "Write a guide" --judge claude --ask "A newcomer can follow it"',
      'throughline task run --file tasks.yaml --json',
      'throughline task run',
    ],
  })
    .argument('[goal]', 'what the agent should reach; - reads it from stdin')
    .option('--file <yaml>', 'a task file')
    .option('--gate <command>', "a command that judges each turn by its exit code, run in the task's directory")
    .option('--judge <agent>', 'an agent that judges instead')
    .option('--ask <text>', 'what the judge decides by')
    .option('--gate-timeout <seconds>', 'how long the command may take', positiveNumber)
    .option('--name <name>', 'a name for the task')
    .option('--milestone <name>', 'use the conversation of this milestone')
    .option('--agent <agent>', 'the agent that works on it (default: the default agent of the settings)')
    .option('--max-iterations <n>', 'give up after this many turns (default: 10)', positiveNumber)
    .option('--budget <amount>', "start no more turns once this is spent: '2 USD' or '50000 tokens'")
    .addOption(
      new Option(
        '--sessions <mode>',
        'kept: one session for all turns; fresh: a new session for each turn, with the history; blank: the same without it',
      ).choices(SESSION_MODES),
    )
    .option('--session <id>', 'continue in this existing session of the agent, or ask')
    .option('--new-session <id>', 'open its session with this id, for agents that take one (Claude: a UUID)')
    .option('--retry-interrupted <n>', 'retry an interrupted turn this many times (default: ask)', wholeNumber)
    .option('--cwd <dir>', 'where to work (default: a directory of its own)')
    .addOption(permissionsOption('deny'))
    .option('--parallel <n>', 'run at most this many tasks of the file at once', positiveNumber)
    .option('--request-id <id>', 'makes a repeated command safe: the same id and tasks are the same tasks')
    .action((goal: string | undefined, flags: RunFlags) => run(goal, flags, cli));
}

async function run(goal: string | undefined, flags: RunFlags, cli: Cli): Promise<void> {
  if (goal !== undefined && flags.file !== undefined) {
    throw new ThroughlineError('invalid', 'Give a goal or a file, not both.', {
      hint: 'You can write the goal into the file.',
    });
  }
  const task = goal === undefined ? null : await taskOf(goal, flags, cli.output);
  if (task === null) refuseTaskFlags(flags);
  checkPlanFlags(goal, flags);
  await cli.withTasks(async (desk) => {
    const { tasks, readFile } = desk;
    const after = await tasks.lastSeq();
    const { requestId, parallel, file } = flags;
    using _held = holdStopSignals(cli.output);
    if (task === null && file === undefined) {
      const left = await tasks.resume();
      if (left.length > 0) return await watchTasks(desk, left, after, cli);
      cli.output.note('There are no unfinished tasks.');
      if (cli.output.json) cli.output.value({ kind: 'result', tasks: [] });
      return DONE;
    }
    const { plan, ...where } = file === undefined ? { plan: { tasks: [task] }, locate: () => '' } : readFile(file);
    // `tasks.add` checks it.
    const whole = (parallel === undefined ? plan : withParallel(plan, parallel)) as TaskPlan;
    const added = await tasks.add(whole, { ...given({ requestId }), ...where });
    if (added.duplicate) cli.output.note('This request was already accepted. These are its tasks.');
    return await watchTasks(desk, added.tasks, after, cli);
  });
}

const TASK_FLAGS = [
  'name',
  'milestone',
  'agent',
  'maxIterations',
  'budget',
  'sessions',
  'session',
  'newSession',
  'retryInterrupted',
  'cwd',
  'permissions',
];
const GATE_FLAGS = ['gate', 'judge', 'ask', 'gateTimeout'];

async function taskOf(goal: string, flags: RunFlags, output: Output): Promise<object> {
  const set = given(Object.fromEntries(TASK_FLAGS.map((name) => [name, flags[name]])));
  return { goal: await readPrompt(goal, output), ...set, ...gateOf(flags) };
}

function gateOf({ gate, judge, ask, gateTimeout }: RunFlags): object {
  const fault = (message: string, hint: string) => new ThroughlineError('invalid', message, { hint });
  if (gate !== undefined && judge !== undefined) {
    throw fault('Give a gate or a judge, not both.', 'You can tell the judge to run the command.');
  }
  if (judge === undefined && ask !== undefined) throw fault('"--ask" needs "--judge".', 'Name the agent that judges.');
  if (gate === undefined && gateTimeout !== undefined) {
    throw fault('"--gate-timeout" needs "--gate".', 'Give the command, or leave out the timeout.');
  }
  if (judge !== undefined) return { gate: given({ agent: judge, ask }) };
  return gate === undefined ? {} : { gate: given({ command: gate, timeout: gateTimeout }) };
}

/** An option that would have no effect is refused, never ignored. */
function refuseTaskFlags(flags: RunFlags): void {
  const name = [...TASK_FLAGS, ...GATE_FLAGS].find((one) => flags[one] !== undefined);
  if (name === undefined) return;
  const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new ThroughlineError('invalid', `"--${flag}" needs a goal.`, {
    hint: 'For a task file, set it in the file.',
  });
}

function checkPlanFlags(goal: string | undefined, { file, parallel, requestId }: RunFlags): void {
  if (parallel !== undefined && file === undefined) {
    throw new ThroughlineError('invalid', '"--parallel" needs "--file": it limits how many of its tasks run at once.', {
      hint: 'To limit all tasks of the data home, use the setting "tasks.parallel".',
    });
  }
  if (requestId !== undefined && goal === undefined && file === undefined) {
    throw new ThroughlineError('invalid', '"--request-id" needs a goal or a file.', {
      hint: 'Without either, "throughline task run" continues unfinished tasks.',
    });
  }
}

function withParallel(plan: unknown, parallel: number): unknown {
  if (Array.isArray(plan)) return { tasks: plan, parallel };
  const isPlan = typeof plan === 'object' && plan !== null && 'tasks' in plan;
  return isPlan ? { ...plan, parallel } : { tasks: [plan], parallel };
}

function permissionsOption(usual: string): Option {
  const about = `when the agent asks for permission: wait for an answer, or deny (default: ${usual})`;
  return new Option('--permissions <mode>', about).choices(PERMISSION_MODES);
}

export function defineRetry(task: Command, cli: Cli): void {
  subcommand(task, 'retry', {
    summary: 'continue a task that asks, has failed or was cancelled',
    description: 'Continue a task that asks, has failed or was cancelled, in the same conversation.',
    examples: [
      'throughline task retry parser --say "Commas inside quotes do not separate"',
      "throughline task retry parser --budget '5 USD'",
      'throughline task retry parser --permissions ask',
    ],
  })
    .argument('<task>', 'its id or name')
    .option('--say <text>', 'a message for the agent')
    .option('--budget <amount>', 'a new budget; includes what was already spent')
    .option('--max-iterations <n>', 'give up after this many more turns', positiveNumber)
    .addOption(permissionsOption('as before'))
    .action((id: string, flags: RetryOptions) => retry(id, flags, cli));
}

async function retry(id: string, flags: RetryOptions, cli: Cli): Promise<void> {
  await cli.withTasks(async (desk) => {
    const after = await desk.tasks.lastSeq();
    const task = await desk.tasks.retry(id, given(flags));
    const code = await watchTasks(desk, [task], after, cli);
    // Tasks that waited for this one may be queued now, but this process was asked for one task.
    if (!desk.served && (await desk.tasks.list({ states: ['queued'], limit: 1 })).length > 0) {
      cli.output.note('Other tasks are queued. To continue with them, run "throughline task run".');
    }
    return code;
  });
}
