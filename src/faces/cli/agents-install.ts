import type { Command } from 'commander';
import type { Cli } from './cli.ts';
import { addExamples } from './examples.ts';
import { DONE } from './exit-codes.ts';
import { notThroughServer } from './not-through-server.ts';
import { onStopSignals } from './stop-signals.ts';
import { oneLine } from './terminal-text.ts';

/** `agents install NAME`, below `agents`. */
export function defineInstall(agents: Command, cli: Cli): void {
  const command = agents
    .command('install')
    .summary("bring an agent's program into the data home, by npm")
    .description("Bring an agent's program into the data home, by npm. Scripts of packages are not run.")
    .argument('<name>', 'claude')
    // Written `--version` by people: see `withInstallVersion`.
    .option('--package-version <version>', 'another version than the tested one; may be written --version')
    .action((name: string, options: { packageVersion?: string }) => install(name, options.packageVersion ?? null, cli));
  addExamples(command, 'throughline agents install claude', 'throughline agents install claude --version 0.3.325');
}

const PROGRESS_MS = 1_000;

async function install(
  agent: string,
  version: string | null,
  { parts, output, options, exitWith }: Cli,
): Promise<void> {
  if (options.server !== undefined) throw notThroughServer('agents install');
  const stop = new AbortController();
  const stopListening = onStopSignals({
    cancel: () => stop.abort(),
    kill: () => stop.abort(),
    terminate: () => stop.abort(),
  });
  const started = performance.now();
  const tick = () =>
    output.progress(`installing ${oneLine(agent)} by npm, ${Math.round((performance.now() - started) / 1_000)} s …`);
  const timer = setInterval(tick, PROGRESS_MS);
  tick();
  try {
    const result = await parts.install({ agent, version, home: options.home, signal: stop.signal });
    if (output.json) output.value({ agent, ...result });
    else {
      const done = result.changed ? 'installed' : 'was there already';
      output.line(`${oneLine(agent)} ${oneLine(result.version)} ${done}: ${oneLine(result.folder)}`);
    }
    exitWith(DONE);
  } finally {
    clearInterval(timer);
    stopListening();
  }
}
