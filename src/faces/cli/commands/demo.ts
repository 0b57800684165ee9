import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Command, Option } from 'commander';
import { ThroughlineError } from '../../../core/errors.ts';
import type { DemoRequest } from '../../../ports/demo.ts';
import type { Cli } from '../cli.ts';
import { runDemo } from '../demo/run-demo.ts';
import { introduce, showStep } from '../demo/show-step.ts';
import { addExamples } from '../examples.ts';
import { DONE, EXIT } from '../exit-codes.ts';
import { styled } from '../output.ts';
import { onStopSignals } from '../stop-signals.ts';

const AGENTS: readonly DemoRequest['agent'][] = ['scripted', 'claude'];

export function define(command: Command, cli: Cli): void {
  command
    .addOption(new Option('--agent <name>', 'who is told the codeword').choices(AGENTS).default('scripted'))
    .option('--live', 'with claude: use your own model and login, which may cost money')
    .action((options: DemoOptions) => demo(options, cli));
  command.addHelpText(
    'after',
    '\nUses a scripted agent, which needs no model, in a temporary home that is removed afterwards. Takes a few seconds.\n' +
      'With "--agent claude" the agent is the real Claude, and its model a stand-in on this machine: no key, no network, no cost.\n' +
      'Ends with 1 when Throughline does not give the right answer.',
  );
  addExamples(command, 'throughline demo', 'throughline demo --agent claude', 'throughline demo --json');
}

interface DemoOptions extends Pick<DemoRequest, 'agent'> {
  readonly live?: boolean;
}

async function demo({ agent, live = false }: DemoOptions, { parts, output, options, exitWith }: Cli): Promise<void> {
  if (live && agent !== 'claude') {
    throw new ThroughlineError('invalid', 'A scripted agent has no model that could be live.', {
      hint: 'Add "--agent claude".',
    });
  }
  const started = performance.now();
  const home = await realpath(await mkdtemp(join(tmpdir(), 'throughline-demo-')));
  const removeHome = () => rm(home, { recursive: true, force: true, maxRetries: 3 });
  const request = { agent, live, home, installedIn: options.home, config: options.config };
  const demoParts = await parts.demo(request).catch(async (error: unknown) => {
    await removeHome();
    throw error;
  });
  const cleanUp = async () => {
    await demoParts.engine.close({ graceMs: 0 });
    await demoParts.close();
    await removeHome();
  };
  const leave = () => void cleanUp().finally(() => process.exit(EXIT.cancelled));
  const stopListening = onStopSignals({ cancel: leave, kill: () => process.exit(EXIT.cancelled), terminate: leave });
  try {
    if (!output.json) introduce(demoParts.about, output);
    const remembered = { without: true, with: false };
    for await (const step of runDemo(demoParts)) {
      if (output.json) output.value(step);
      else showStep(step, output);
      if (step.step === 'without' || step.step === 'with') remembered[step.step] = step.remembered;
    }
    // A control that remembers shows nothing: then the session was not lost.
    const ok = remembered.with && !remembered.without;
    const ms = Math.round(performance.now() - started);
    if (output.json) output.value({ kind: 'result', ok, ms, agent, live });
    else conclude(ok, ms);
    exitWith(ok ? DONE : EXIT.internal);
  } finally {
    stopListening();
    await cleanUp();
  }

  function conclude(ok: boolean, ms: number): void {
    const seconds = `${(ms / 1_000).toFixed(1)} s`;
    output.line();
    if (ok) output.line(styled('green', `The conversation outlived its session. (${seconds})`));
    else output.line(styled('red', `This went wrong: the answers are not what they should be. (${seconds})`));
  }
}
