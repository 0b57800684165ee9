import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { runDemo } from '../demo/run-demo.ts';
import { introduce, showStep } from '../demo/show-step.ts';
import { addExamples } from '../examples.ts';
import { DONE, EXIT } from '../exit-codes.ts';
import { styled } from '../output.ts';
import { onStopSignals } from '../stop-signals.ts';

export function define(command: Command, cli: Cli): void {
  command.action(() => demo(cli));
  command.addHelpText(
    'after',
    '\nUses a scripted agent, which needs no model, in a temporary home that is removed afterwards. Takes a few seconds.\n' +
      'Ends with 1 when Throughline does not give the right answer.',
  );
  addExamples(command, 'throughline demo', 'throughline demo --json');
}

async function demo({ parts, output, exitWith }: Cli): Promise<void> {
  const started = performance.now();
  const home = await mkdtemp(join(tmpdir(), 'throughline-demo-'));
  const { engine, ...rest } = await parts.demo(home);
  const cleanUp = async () => {
    await engine.close({ graceMs: 0 });
    await rm(home, { recursive: true, force: true, maxRetries: 3 });
  };
  const leave = () => void cleanUp().finally(() => process.exit(EXIT.cancelled));
  const stopListening = onStopSignals({ cancel: leave, kill: () => process.exit(EXIT.cancelled), terminate: leave });
  try {
    if (!output.json) introduce(output);
    const remembered = { without: true, with: false };
    for await (const step of runDemo({ engine, ...rest })) {
      if (output.json) output.value(step);
      else showStep(step, output);
      if (step.step === 'without' || step.step === 'with') remembered[step.step] = step.remembered;
    }
    // A control that remembers shows nothing: then the session was not lost.
    const ok = remembered.with && !remembered.without;
    const ms = Math.round(performance.now() - started);
    if (output.json) output.value({ kind: 'result', ok, ms });
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
