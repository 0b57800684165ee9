import type { OpenSandbox } from '../../../ports/sandbox.ts';
import { isOlder } from '../../shared/install.ts';
import { askProgram, programOn } from '../../shared/programs.ts';
import { INSTALLABLE_CLAUDE, isTooOld, OLDEST_SDK, packageIn, packageOfOurs, SDK, type SdkPackage } from './package.ts';

/*
 * Where Claude is looked for, in this order: the settings, the working directory's node_modules, Throughline's own packages, the folder
 * filled by `throughline agents install claude`, PATH. Nothing that is found is executed, except the chosen program: it is asked for its
 * version, in the sandbox that it will run in. Packages are looked for outside of the sandbox, because we import the SDK; a program in
 * one of them counts only if the sandbox has it, too.
 *
 * A working directory may be a project that somebody else wrote, with its own node_modules. Starting a program from there gives
 * that author all our rights before any permission is asked for (a headless gemini-cli trusted the workspace's settings in this
 * way). So it counts only where the agent's settings say `trustProject`, and only the directory that the caller has pinned,
 * never one above it: docs/decisions/0013.
 */
export interface FindSettings {
  /** The program and its first arguments. Has precedence over all places. */
  readonly command?: readonly string[] | undefined;
  /** A folder whose node_modules holds the SDK. Has precedence over all other places. */
  readonly package?: string | undefined;
  /** Whether the node_modules of a conversation's working directory may be used. */
  readonly trustProject?: boolean | undefined;
  /** The folder filled by `throughline agents install claude`. */
  readonly installed: string;
  /** The PATH that the settings set. Left out: that of the sandbox. */
  readonly path?: string | undefined;
}

export interface FoundClaude {
  /** The file of the SDK to import; null: not found. */
  readonly sdk: string | null;
  /** The program, an absolute path, with its first arguments; empty: not found. */
  readonly command: readonly string[];
  /** The version that the program prints; null: there is no program, or it printed none. */
  readonly version: string | null;
  /** For people. */
  readonly where: string;
  /** Why the program cannot be used, and what to do; null: it can. */
  readonly problem: string | null;
  /** The same for the SDK; null also if there is none. */
  readonly sdkProblem: string | null;
}

interface Place {
  readonly name: string;
  readonly package: SdkPackage | null;
}

const WORKING_DIRECTORY = 'the working directory';

/** Looks for the Claude that runs in this sandbox. */
export async function findClaude(settings: FindSettings, sandbox: OpenSandbox): Promise<FoundClaude> {
  const named = settings.command?.[0];
  const command = named === undefined ? null : await programOn(sandbox, named, settings.path);
  if (named !== undefined && command === null) {
    return notFound(`The program ${named} was not found or is not executable. Check the agent's "command".`);
  }
  const places = [...placesOf(settings, sandbox.work)];
  // A setting is used or refused, never ignored (R7).
  if (settings.package !== undefined && places[0]?.package == null) {
    return notFound(`There is no Claude in ${settings.package}/node_modules. Check the agent's "package".`);
  }
  // We import the SDK outside of the sandbox. If an isolated agent could write it, the agent could leave its sandbox.
  const importable = sandbox.host === 'local' ? places : places.filter(({ name }) => name !== WORKING_DIRECTORY);
  // An SDK that is too old is chosen only for its message, unless a setting names it.
  const usable = importable.find((place) => place.package !== null && !isTooOld(place.package));
  const withSdk =
    settings.package === undefined ? (usable ?? importable.find((place) => place.package !== null)) : places[0];
  const sdkProblem = withSdk?.package && isTooOld(withSdk.package) ? tooOld(withSdk.name, withSdk.package) : null;
  // Its program is too old as well, and any other program is not what the setting names.
  if (settings.package !== undefined && sdkProblem !== null && command === null) return notFound(sdkProblem);
  const withProgram = await firstWithProgram(places, sandbox);
  const program = command ?? withProgram?.package?.program ?? (await programOn(sandbox, 'claude', settings.path));
  const from = command !== null ? 'the setting "command"' : (withProgram?.name ?? 'PATH');
  const args = command === null ? [] : (settings.command ?? []).slice(1);
  const fullCommand = program === null ? [] : [program, ...args];
  const version = program === null ? null : await versionOf(fullCommand, settings.path, sandbox);
  return {
    sdk: withSdk?.package?.sdk ?? null,
    command: fullCommand,
    version,
    where: whereOf(withSdk, program === null ? null : `${program} (${from})`),
    problem: problemOf(program, version),
    sdkProblem,
  };
}

async function firstWithProgram(places: readonly Place[], sandbox: OpenSandbox): Promise<Place | undefined> {
  for (const place of places) {
    const program = place.package?.program ?? null;
    if (program !== null && (await sandbox.find(program)) !== null) return place;
  }
  return undefined;
}

function* placesOf({ package: folder, trustProject, installed }: FindSettings, cwd: string): Generator<Place> {
  if (folder !== undefined) yield { name: 'the setting "package"', package: packageIn(folder) };
  if (trustProject) yield { name: WORKING_DIRECTORY, package: packageIn(cwd) };
  yield { name: "Throughline's own packages", package: packageOfOurs() };
  yield { name: 'throughline agents install', package: packageIn(installed) };
}

function whereOf(withSdk: Place | undefined, program: string | null): string {
  const sdk = withSdk?.package ? `SDK ${withSdk.package.version} in ${withSdk.package.folder} (${withSdk.name})` : null;
  return [program, sdk].filter((part) => part !== null).join('; ') || 'nowhere';
}

function tooOld(place: string, { version, folder, claude }: SdkPackage): string {
  const brings = claude === null ? '' : `, which brings Claude ${claude},`;
  return (
    `The Agent SDK ${version} in ${folder} (${place})${brings} is too old. Throughline needs ${OLDEST_SDK} or newer: ` +
    `run "npm install ${SDK}@${INSTALLABLE_CLAUDE.tested}" there, or "throughline agents install claude" and remove "package".`
  );
}

/** Earlier versions run a prompt such as "/clear" as a command, and the session forgets everything: docs/decisions/0043. */
const OLDEST_VERSION = '2.1.248';

function problemOf(program: string | null, version: string | null): string | null {
  if (program === null) {
    return 'Claude was not found. Run "throughline agents install claude", or put the program "claude" on PATH.';
  }
  if (version === null) return `${program} does not print its version. Run "${program} --version" to see why.`;
  if (!isOlder(version, OLDEST_VERSION)) return null;
  const update = 'run "claude update" or "throughline agents install claude"';
  return `Claude ${version} (${program}) is too old. Throughline needs ${OLDEST_VERSION} or newer: ${update}.`;
}

function notFound(problem: string): FoundClaude {
  return { sdk: null, command: [], version: null, where: 'nowhere', problem, sdkProblem: null };
}

const VERSION_TIMEOUT_MS = 10_000;

/** Null: the program failed, or printed no version. */
async function versionOf(
  command: readonly string[],
  path: string | undefined,
  sandbox: OpenSandbox,
): Promise<string | null> {
  const env = { NO_COLOR: '1', ...(path === undefined ? {} : { PATH: path }), DISABLE_AUTOUPDATER: '1' };
  const signal = AbortSignal.timeout(VERSION_TIMEOUT_MS);
  const { failed, output } = await askProgram(sandbox, [...command, '--version'], { env, signal });
  return failed ? null : (/\d+\.\d+\.\d+/.exec(output)?.[0] ?? null);
}
