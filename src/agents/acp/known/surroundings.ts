import type { Folder, OpenSandbox } from '../../../ports/sandbox.ts';
import { askProgram } from '../../shared/programs.ts';

/** Where an agent runs, and which variables it has there beyond those that every program has. */
export interface Surroundings {
  readonly sandbox: OpenSandbox;
  readonly env: Readonly<Record<string, string>>;
}

/** The home directory of the agent. */
export function homeOf({ sandbox, env }: Surroundings): string {
  return env.HOME ?? sandbox.home;
}

/** The Node that runs scripts in a sandbox: ours, where it is visible there. Null: there is none. */
export async function nodeIn(sandbox: OpenSandbox): Promise<string | null> {
  return (await sandbox.find(process.execPath)) ?? sandbox.find('node');
}

/** The end of a text file. It may begin in the middle of a line. Null: there is no such file. */
export async function endOf(folder: Folder, path: string, most: number): Promise<string | null> {
  const stat = await folder.stat(path);
  if (stat === null) return null;
  const file = await folder.read(path, { from: Math.max(0, stat.size - most), most });
  return file && Buffer.from(file.bytes).toString('utf8');
}

const MOST_MS = 10_000;

/** Runs a program in the sandbox and returns what it prints. Null: it was not started, failed, or took too long. */
export async function outputOf({ sandbox, env }: Surroundings, command: readonly string[]): Promise<string | null> {
  const { failed, output } = await askProgram(sandbox, command, { env, signal: AbortSignal.timeout(MOST_MS) });
  return failed ? null : output;
}
