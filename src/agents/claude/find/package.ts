import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { type Installable, isOlder } from '../../shared/install.ts';
import { onPath } from '../../shared/paths.ts';

/** The SDK in some node_modules. Nothing of it has been executed. */
export interface SdkPackage {
  readonly folder: string;
  /** The file to import. */
  readonly sdk: string;
  readonly version: string;
  /** The version of Claude that belongs to it; null: its manifest does not name it. */
  readonly claude: string | null;
  /** The program in the SDK's package for this machine; null: npm left it out. */
  readonly program: string | null;
}

export const SDK = '@anthropic-ai/claude-agent-sdk';

/** Earlier versions have no option to take a prompt literally: docs/decisions/0043. Versions up to 0.2.112 have a script, not a program. */
export const OLDEST_SDK = '0.3.248';

export function isTooOld({ version }: Pick<SdkPackage, 'version'>): boolean {
  return isOlder(version, OLDEST_SDK);
}

/** What `throughline agents install claude` installs. */
export const INSTALLABLE_CLAUDE: Installable = {
  agent: 'claude',
  package: SDK,
  tested: '0.3.325',
  megabytes: 500,
  isInstalled(folder, version) {
    const found = packageIn(folder);
    return found !== null && found.version === version && found.program !== null;
  },
};

/** Looks only in the folder's own node_modules, never in one above it. Null: it is not there. */
export function packageIn(folder: string): SdkPackage | null {
  return packageAt(join(folder, 'node_modules', SDK));
}

/** The SDK that Node finds for our own code: installed beside Throughline, as an optional peer. Null: there is none. */
export function packageOfOurs(): SdkPackage | null {
  try {
    return packageAt(dirname(createRequire(import.meta.url).resolve(SDK)));
  } catch {
    return null;
  }
}

/**
 * The adapter for a user who has configured nothing; null: Claude is not installed. Only looks at files, so that users of other agents
 * do not wait for it. The first turn shows whether it runs.
 */
export function availableClaude(installed: string, path: string): 'claude-sdk' | 'claude-cli' | null {
  const sdk = [packageOfOurs(), packageIn(installed)].find((found) => found !== null && !isTooOld(found)) ?? null;
  if (sdk !== null && sdk.program !== null) return 'claude-sdk';
  if (onPath('claude', path) === null) return null;
  return sdk === null ? 'claude-cli' : 'claude-sdk';
}

function packageAt(path: string): SdkPackage | null {
  try {
    const folder = realpathSync(path);
    const manifest: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const { version, main, claudeCodeVersion } = manifest as Record<string, unknown>;
    const sdk = join(folder, typeof main === 'string' ? main : 'sdk.mjs');
    if (typeof version !== 'string' || !existsSync(sdk)) return null;
    const claude = typeof claudeCodeVersion === 'string' ? claudeCodeVersion : null;
    return { folder, sdk, version, claude, program: programOf(sdk) };
  } catch {
    return null;
  }
}

/** Searches as the SDK does. npm leaves out the packages for other machines and the other libc. */
function programOf(sdk: string): string | null {
  const { resolve } = createRequire(sdk);
  const file = process.platform === 'win32' ? 'claude.exe' : 'claude';
  const found = machineNames().flatMap((name) => {
    try {
      const program = join(dirname(resolve(`${SDK}-${name}/package.json`)), file);
      return existsSync(program) ? [program] : [];
    } catch {
      return [];
    }
  });
  return (found.length > 1 && !hasGlibc() ? found[1] : found[0]) ?? null;
}

function machineNames(): string[] {
  const { platform, arch } = process;
  return platform === 'linux' ? [`linux-${arch}`, `linux-${arch}-musl`] : [`${platform}-${arch}`];
}

/** Slow; called only when both packages are installed. */
function hasGlibc(): boolean {
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime !== undefined;
}
