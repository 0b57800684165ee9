import type { Command } from 'commander';
import { hasCode } from '../../../../core/errors.ts';
import type { AgentTraits } from '../../../../core/restore/traits.ts';
import type { AgentInfo, Engine } from '../../../../ports/engine.ts';
import { addHelp, type Cli, notThroughServer, subcommand } from '../../cli.ts';
import { type Output, type Piece, styled } from '../../output.ts';
import { onStopSignals } from '../../stop-signals.ts';
import { oneLine } from '../../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command.action(() => agents(cli));
  addHelp(command, {
    about:
      'Agents are set in throughline.config.json. Without settings, Claude and other known agents are used where they are ' +
      'found. Each agent is started to see whether you are logged in; no model is called. A missing agent is listed with ' +
      'what to do.',
    examples: [
      'throughline agents',
      'throughline agents install claude',
      "throughline agents --json | jq 'select(.login.loggedIn == false)'",
    ],
  });
  defineInstall(command, cli);
}

async function agents({ output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const all = await withLogins(engine, output);
    await output.each(all, (agent) => showAgent(agent, output), 'There are no agents.');
    if (!all.some(({ adapter }) => adapter.startsWith('claude'))) {
      output.note(styled('dim', 'Claude is not installed. To install it, run "throughline agents install claude".'));
    }
  });
}

/** A key may have no right to start agents. Then the agents are listed without their logins. */
async function withLogins(engine: Engine, output: Output): Promise<AgentInfo[]> {
  try {
    return await engine.agents({ login: true });
  } catch (error) {
    if (!hasCode(error, 'refused')) throw error;
    const agents = await engine.agents();
    output.note(styled('dim', `Logins are not shown. ${oneLine(error.message)}`));
    return agents;
  }
}

/** Prints an agent: its version, what it can do, where it was found, and whether it is logged in. */
export function showAgent(
  { name, adapter, isDefault, where, traits, problem, login }: AgentInfo,
  output: Output,
): void {
  const state =
    traits === null ? styled('red', output.runnable(oneLine(problem ?? 'not available'))) : traitsLine(traits);
  output.line(styled('bold', oneLine(name)), ` (${adapter}${isDefault ? ', default' : ''}): `, state);
  if (traits !== null && problem !== null) output.line('  ', styled('red', output.runnable(oneLine(problem))));
  if (where !== null) output.line('  ', styled('dim', oneLine(where)));
  if (login !== null) output.line('  ', loginLine(login));
}

function traitsLine(traits: AgentTraits): string {
  const can = (['resume', 'load', 'list', 'rehydrate', 'noTools', 'position', 'images'] as const).filter(
    (trait) => traits[trait],
  );
  return `version ${oneLine(traits.version)}, ids ${traits.id}, window ${traits.window} tokens${traits.windowFrom === 'assumed' ? ' (assumed)' : ''}; ${can.join(', ') || 'no further traits'}`;
}

function loginLine({ loggedIn, hint }: NonNullable<AgentInfo['login']>): Piece {
  const why = hint === null ? '' : `: ${oneLine(hint)}`;
  if (loggedIn === null) return styled('dim', `login unknown${why}`);
  return loggedIn ? styled('dim', 'logged in') : styled('red', `not logged in${why}`);
}

/** `agents install NAME`. */
function defineInstall(agents: Command, cli: Cli): void {
  subcommand(agents, 'install', {
    summary: "install an agent's program in the data home, with npm",
    description: "Install an agent's program in the data home, with npm. Install scripts of packages are not run.",
    examples: [
      'throughline agents install claude',
      'throughline agents install codex',
      'throughline agents install claude --version 0.3.325',
    ],
  })
    .argument('<agent>', '"claude" or "codex"')
    // People write `--version`: see `withInstallVersion`.
    .option('--package-version <version>', 'another version than the tested one; you can also write --version')
    .action((name: string, options: { packageVersion?: string }) => install(name, options.packageVersion ?? null, cli));
}

async function install(agent: string, version: string | null, { parts, output, options }: Cli): Promise<void> {
  if (options.server !== undefined) throw notThroughServer('agents install');
  const stop = new AbortController();
  const abort = () => stop.abort();
  const stopListening = onStopSignals({ cancel: abort, kill: abort, terminate: abort });
  output.progress(`installing ${oneLine(agent)} with npm …`);
  try {
    const result = await parts.install({ agent, version, home: options.home, signal: stop.signal });
    const done = result.changed ? 'installed' : 'is already installed';
    output.result(
      { agent, ...result },
      `${oneLine(agent)} ${oneLine(result.version)} ${done}: ${oneLine(result.folder)}`,
    );
  } finally {
    stopListening();
  }
}
