import type { Command } from 'commander';
import { addHelp, type Cli, notThroughServer } from '../../cli.ts';
import { onStopSignals } from '../../stop-signals.ts';
import { oneLine } from '../../terminal-text.ts';

/** `agents install NAME`. */
export function defineInstall(agents: Command, cli: Cli): void {
  const command = agents
    .command('install')
    .summary("install an agent's program in the data home, with npm")
    .description("Install an agent's program in the data home, with npm. Install scripts of packages are not run.")
    .argument('<name>', 'claude')
    // People write `--version`: see `withInstallVersion`.
    .option('--package-version <version>', 'another version than the tested one; you can also write --version')
    .action((name: string, options: { packageVersion?: string }) => install(name, options.packageVersion ?? null, cli));
  addHelp(command, {
    examples: ['throughline agents install claude', 'throughline agents install claude --version 0.3.325'],
  });
}

const PROGRESS_MS = 1_000;

async function install(agent: string, version: string | null, { parts, output, options, clock }: Cli): Promise<void> {
  if (options.server !== undefined) throw notThroughServer('agents install');
  const stop = new AbortController();
  const abort = () => stop.abort();
  const stopListening = onStopSignals({ cancel: abort, kill: abort, terminate: abort });
  const started = clock.monotonic();
  const tick = () => {
    const seconds = Math.round((clock.monotonic() - started) / 1_000);
    output.progress(`installing ${oneLine(agent)} with npm, ${seconds} s …`);
  };
  const timer = setInterval(tick, PROGRESS_MS);
  tick();
  try {
    const result = await parts.install({ agent, version, home: options.home, signal: stop.signal });
    const done = result.changed ? 'installed' : 'is already installed';
    output.result(
      { agent, ...result },
      `${oneLine(agent)} ${oneLine(result.version)} ${done}: ${oneLine(result.folder)}`,
    );
  } finally {
    clearInterval(timer);
    stopListening();
  }
}
