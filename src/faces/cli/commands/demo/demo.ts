import { type Command, Option } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import type { DemoRequest } from '../../../../ports/server.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { DONE, EXIT } from '../../exit-codes.ts';
import { receiptLine } from '../../lines.ts';
import { type Output, type Piece, styled } from '../../output.ts';
import { onStopSignals } from '../../stop-signals.ts';
import { type DemoStep, runDemo } from './run-demo.ts';

const AGENTS: readonly DemoRequest['agent'][] = ['scripted', 'claude'];

export function define(command: Command, cli: Cli): void {
  command
    .addOption(new Option('--agent <name>', 'the agent to use').choices(AGENTS).default('scripted'))
    .option('--live', 'with claude: use your own model and login; this may cost money')
    .action((options: DemoOptions) => demo(options, cli));
  addHelp(command, {
    about:
      'Uses a scripted agent, which needs no model, in a temporary data home that is removed afterwards. Takes a few seconds. ' +
      'With "--agent claude", the agent is the real Claude, and its model is a stand-in on this machine: no key, no network, ' +
      'no cost. Exit code 1: the answers are not the expected ones.',
    examples: ['throughline demo', 'throughline demo --agent claude', 'throughline demo --json'],
  });
}

interface DemoOptions extends Pick<DemoRequest, 'agent'> {
  readonly live?: boolean;
}

async function demo(
  { agent, live = false }: DemoOptions,
  { parts, output, options, clock, exitWith, waits }: Cli,
): Promise<void> {
  if (live && agent !== 'claude') {
    throw new ThroughlineError('invalid', 'The scripted agent has no model, so --live cannot be used with it.', {
      hint: 'Add "--agent claude".',
    });
  }
  const started = clock.monotonic();
  output.waitFor(waits);
  const demoParts = await parts.demo({ agent, live, home: options.home, config: options.config });
  const cleanUp = async () => {
    await demoParts.engine.close({ graceMs: 0 });
    await demoParts.close();
  };
  const leave = () => void cleanUp().finally(() => process.exit(EXIT.cancelled));
  const stopListening = onStopSignals({ cancel: leave, kill: () => process.exit(EXIT.cancelled), terminate: leave });
  try {
    if (!output.json) {
      output.line(styled('bold', 'A conversation that outlives its session.'));
      output.line(styled('dim', demoParts.about));
    }
    const remembered = { without: true, with: false };
    for await (const step of runDemo(demoParts)) {
      if (output.json) output.value(step);
      else showStep(step, output);
      if (step.step === 'without' || step.step === 'with') remembered[step.step] = step.remembered;
    }
    // If the agent remembers without Throughline, its session was not lost: the demo has failed.
    const ok = remembered.with && !remembered.without;
    const ms = Math.round(clock.monotonic() - started);
    if (output.json) output.value({ kind: 'result', ok, ms, agent, live });
    else conclude(ok, ms, output);
    exitWith(ok ? DONE : EXIT.internal);
  } finally {
    stopListening();
    await cleanUp();
  }
}

function conclude(ok: boolean, ms: number, output: Output): void {
  const seconds = `${(ms / 1_000).toFixed(1)} s`;
  output.line();
  if (ok) output.line(styled('green', `The conversation outlived its session. (${seconds})`));
  else output.line(styled('red', `Failed: the answers are not the expected ones. (${seconds})`));
}

function showStep(step: DemoStep, output: Output): void {
  output.line();
  switch (step.step) {
    case 'told':
      heading(output, '1  The agent is told a random codeword');
      detail(output, `you    ${step.prompt}`);
      detail(output, `agent  ${step.reply}`);
      break;
    case 'lost':
      heading(output, '2  Its session is lost');
      detail(
        output,
        `process ${step.pid} killed with SIGKILL, ${step.files} session file${step.files === 1 ? '' : 's'} deleted`,
      );
      break;
    case 'without':
      heading(output, '3  Without Throughline: resume the saved session id, else start a new session');
      detail(
        output,
        step.refusal === null ? 'resumed' : `resume failed (${step.refusal}), so a new session was started`,
      );
      question(step, output);
      break;
    case 'with':
      heading(output, '4  With Throughline');
      question(step, output);
      if (step.receipt) detail(output, styled('dim', `receipt  ${receiptLine(step.receipt)}`));
      break;
  }
}

function question(step: Extract<DemoStep, { remembered: boolean }>, output: Output): void {
  detail(output, `you    ${step.prompt}`);
  const verdict = step.remembered ? styled('green', '  ← remembered') : styled('red', '  ← forgotten');
  detail(output, `agent  ${step.reply}`, verdict);
}

function heading(output: Output, text: string): void {
  output.line(styled('cyan', text));
}

function detail(output: Output, ...pieces: readonly Piece[]): void {
  output.line('   ', ...pieces);
}
