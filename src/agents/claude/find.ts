import { isAbsolute } from 'node:path';
import { onPath, runnable } from '../shared/programs.ts';
import { packageIn, packageOfOurs, type SdkPackage } from './find-package.ts';
import { versionOf } from './find-program.ts';

/*
 * Where Claude is. The places in their order: the setting, the working directory's node_modules, Throughline's own, the
 * folder filled by `throughline agents install claude`, PATH. What a place has is looked at, never executed; only the program
 * that is chosen in the end is asked for its version.
 *
 * A working directory is where the *work* lies: perhaps a project that somebody else wrote, with a node_modules that came
 * along. Starting a program out of it gives that somebody everything that we may do, before any permission is asked for (a
 * headless gemini-cli trusted the workspace's settings in just this way). So it counts only where the agent's settings say
 * `trustProject`, and only the directory that the caller has pinned, never one above it: docs/decisions/0013.
 */
export interface FindSettings {
  /** The program and its first arguments. Beats every place. */
  readonly command?: readonly string[] | undefined;
  /** A folder whose node_modules holds the SDK. Beats every place but `command`. */
  readonly package?: string | undefined;
  /** Whether the node_modules of a conversation's working directory may be used. */
  readonly trustProject?: boolean | undefined;
  /** The folder filled by `throughline agents install claude`. */
  readonly installed: string;
  /** Where programs are looked for, as the variable PATH has it. */
  readonly path: string;
}

export interface FoundClaude {
  /** The file of the SDK to import; null: there is none. */
  readonly sdk: string | null;
  /** The version of the SDK; null: there is none. */
  readonly sdkVersion: string | null;
  /** The program's whole path; null: there is none. */
  readonly program: string | null;
  /** The program with its first arguments; empty: there is none. */
  readonly command: readonly string[];
  /** What the program says it is; null: there is none, or it said nothing. */
  readonly version: string | null;
  /** For people. */
  readonly where: string;
  /** What is missing and what to do; null: nothing. */
  readonly problem: string | null;
}

interface Place {
  readonly name: string;
  readonly package: SdkPackage | null;
}

const NOT_INSTALLED =
  'Claude was not found. Run "throughline agents install claude", or put the program "claude" on PATH.';

/** `cwd`: the working directory that the conversation is pinned to; null: none is known yet. */
export async function findClaude(settings: FindSettings, cwd: string | null): Promise<FoundClaude> {
  const named = settings.command?.[0];
  const command = named === undefined ? null : runnable(named, settings.path);
  if (named !== undefined && command === null) {
    return nothing(`The program ${named} was not found, or may not be executed. Check the agent's "command".`);
  }
  const places = [...placesOf(settings, cwd)];
  // What the caller named is used or refused, never passed over.
  if (settings.package !== undefined && places[0]?.package == null) {
    return nothing(`There is no Claude in ${settings.package}/node_modules. Check the agent's "package".`);
  }
  const withSdk = places.find((place) => place.package !== null);
  const withProgram = places.find((place) => place.package?.program != null);
  const program = command ?? withProgram?.package?.program ?? onPath('claude', settings.path);
  const from = command !== null ? 'the setting "command"' : (withProgram?.name ?? 'PATH');
  const whole = program === null ? [] : [program, ...(command === null ? [] : (settings.command ?? []).slice(1))];
  const version = program === null ? null : await versionOf(whole, settings.path);
  return {
    sdk: withSdk?.package?.sdk ?? null,
    sdkVersion: withSdk?.package?.version ?? null,
    program,
    command: whole,
    version,
    where: whereOf(withSdk, program === null ? null : `${program} (${from})`),
    problem: problemOf(program, version),
  };
}

function* placesOf({ package: folder, trustProject, installed }: FindSettings, cwd: string | null): Generator<Place> {
  if (folder !== undefined) yield { name: 'the setting "package"', package: packageIn(folder) };
  if (trustProject && cwd !== null && isAbsolute(cwd)) {
    yield { name: 'the working directory', package: packageIn(cwd) };
  }
  yield { name: "Throughline's own packages", package: packageOfOurs() };
  yield { name: 'throughline agents install', package: packageIn(installed) };
}

function whereOf(withSdk: Place | undefined, program: string | null): string {
  const sdk = withSdk?.package ? `SDK ${withSdk.package.version} in ${withSdk.package.folder} (${withSdk.name})` : null;
  return [program, sdk].filter((part) => part !== null).join('; ') || 'nowhere';
}

function problemOf(program: string | null, version: string | null): string | null {
  if (program === null) return NOT_INSTALLED;
  return version === null
    ? `${program} does not say which version it is. Run "${program} --version" to see why.`
    : null;
}

function nothing(problem: string): FoundClaude {
  return { sdk: null, sdkVersion: null, program: null, command: [], version: null, where: 'nowhere', problem };
}
