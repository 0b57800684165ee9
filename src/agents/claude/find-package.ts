import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** The SDK as it lies in some node_modules. Nothing of it has been executed. */
export interface SdkPackage {
  readonly folder: string;
  /** The file to import. */
  readonly sdk: string;
  readonly version: string;
  /** The program in the SDK's package for this machine; null: npm left it out. */
  readonly program: string | null;
}

export const SDK = '@anthropic-ai/claude-agent-sdk';

/** In this folder's own node_modules, never in one above it. Null: it is not there. */
export function packageIn(folder: string): SdkPackage | null {
  return packageAt(join(folder, 'node_modules', SDK));
}

/** Where Node finds it for our own code: installed beside Throughline, as an optional peer. Null: it is not there. */
export function packageOfOurs(): SdkPackage | null {
  try {
    return packageAt(dirname(createRequire(import.meta.url).resolve(SDK)));
  } catch {
    return null;
  }
}

function packageAt(path: string): SdkPackage | null {
  try {
    const folder = realpathSync(path);
    const manifest: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const { version, main } = manifest as { version?: unknown; main?: unknown };
    const sdk = join(folder, typeof main === 'string' ? main : 'sdk.mjs');
    if (typeof version !== 'string' || !existsSync(sdk)) return null;
    return { folder, sdk, version, program: programOf(sdk) };
  } catch {
    return null;
  }
}

/** Found as the SDK finds it. npm leaves out the packages for other machines, and with them the wrong libc. */
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

function machineNames({ platform, arch } = process): string[] {
  return platform === 'linux' ? [`linux-${arch}`, `linux-${arch}-musl`] : [`${platform}-${arch}`];
}

/** Asked only when both are there: the report takes a while. */
function hasGlibc(): boolean {
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime !== undefined;
}
