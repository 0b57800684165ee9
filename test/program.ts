import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const bundledProgram = process.env.THROUGHLINE_TEST_PROGRAM;

/**
 * The executable that tests start: the bundled one, as in the published package, which scripts/test-program.js builds. If that script did
 * not run, the executable of the checkout.
 */
export const PROGRAM: string = bundledProgram ?? fileURLToPath(new URL('../bin/throughline.js', import.meta.url));

/** The library, for programs that tests start: also bundled, because it loads in half the time. */
export const library = (): Promise<typeof import('../src/index.ts')> =>
  import(bundledProgram === undefined ? '../src/index.ts' : join(dirname(bundledProgram), '../dist/index.js'));

/** A program of test/agents/acp/programs: also bundled, with the packages that it uses. */
export function agentProgram(name: string): string {
  if (bundledProgram !== undefined) return join(dirname(bundledProgram), '../agents', `${name}.mjs`);
  return fileURLToPath(new URL(`agents/acp/programs/${name}.ts`, import.meta.url));
}

/** A program of the tests that uses our sources in a process of its own (`PROGRAMS` in scripts/test-program.js): also bundled. */
export function testProgram(source: URL): string {
  if (bundledProgram !== undefined)
    return join(dirname(bundledProgram), '../programs', `${basename(source.pathname, '.ts')}.mjs`);
  return fileURLToPath(source);
}
