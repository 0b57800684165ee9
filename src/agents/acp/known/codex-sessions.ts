import { createReadStream, globSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { createZstdDecompress } from 'node:zlib';
import { isObject } from '../../../core/turn/content.ts';
import { isOlder } from '../../shared/install.ts';
import { LineReader } from '../../shared/lines.ts';
import type { Capabilities } from '../connection/capabilities.ts';
import { codexHome, OLD_CODEX_ACP } from './codex.ts';
import type { AgentProgram } from './description.ts';

/*
 * Which sessions a program for Codex may open. Codex keeps a session in a file that it appends to, and the format of these files
 * changes. An older Codex does not notice: it appends records of its own format to a newer file, and afterwards no Codex opens that
 * session any more (seen with Zed's codex-acp 0.16.0 and a session of Codex 0.166). So the file is looked at before the program is
 * asked to open it.
 */

/** `session_meta.history_mode` of the files, oldest first. A Codex continues its own format and all before it. */
const FORMATS = ['legacy', 'paginated'];

/** The first Codex that writes and continues the newest of these, and the first program that comes with it. */
const NEWEST_SINCE = { codex: '0.153.0', acp: '1.9.0' };

const UPDATE =
  'To update, run "throughline agents install codex", and remove "command" and CODEX_PATH from its settings';

/** Why this program must not open a session; null: it may. */
export async function whyNotOpened(
  session: string,
  { name, version }: Pick<Capabilities, 'name' | 'version'>,
  program: Pick<AgentProgram, 'env' | 'start' | 'memory'>,
): Promise<string | null> {
  const isNewest = await continuesNewest(name, version, program);
  const files = filesOf(session, codexHome(program.env));
  // Codex also finds files by an index that names them wherever they are. A program that knows all formats cannot do harm.
  if (files.length === 0)
    return isNewest ? null : `nothing shows that ${name} ${version} may open it: its file was not found`;
  for (const file of files) {
    const format = await formatOf(file, isNewest);
    if (format !== null && FORMATS.includes(format) && (isNewest || format === FORMATS[0])) continue;
    const why = format === null ? 'its file cannot be read' : `a newer Codex wrote it, in the format "${format}"`;
    return `${why}, and ${name} ${version} could damage it. ${UPDATE}`;
  }
  return null;
}

/** Why a person should update this program; null: there is no reason. */
export function outdated({ name, version }: Pick<Capabilities, 'name' | 'version'>): string | null {
  if (comesWithNewest(name, version)) return null;
  return `${name} ${version} damages sessions of newer Codexes, so it is not asked to open them. ${UPDATE}.`;
}

function comesWithNewest(name: string, version: string): boolean {
  return name !== OLD_CODEX_ACP && !isOlder(version, NEWEST_SINCE.acp);
}

async function continuesNewest(
  name: string,
  version: string,
  { env, start, memory }: Pick<AgentProgram, 'env' | 'start' | 'memory'>,
): Promise<boolean> {
  if (!comesWithNewest(name, version)) return false;
  const { CODEX_PATH: own } = env;
  if (own === undefined) return true;
  const child = await start([own, '--version'], { cwd: memory.folder, env });
  child.stdin.end();
  const printed: Uint8Array[] = [];
  const [exit] = await Promise.all([child.exited, gather(child.stdout, printed), gather(child.stderr, [])]);
  const [codex] = /\d+\.\d+\.\d+/.exec(Buffer.concat(printed).toString()) ?? [];
  return exit.code === 0 && codex !== undefined && !isOlder(codex, NEWEST_SINCE.codex);
}

async function gather(output: AsyncIterable<Uint8Array>, into: Uint8Array[]): Promise<void> {
  for await (const chunk of output) into.push(chunk);
}

/**
 * Files are compressed after a week, and moved when a person archives the session. There may be an older copy beside the one that is
 * continued, and which of them the program opens, only it knows.
 */
function filesOf(session: string, home: string): string[] {
  if (!/^[\w-]+$/.test(session)) return [];
  const name = `rollout-*-${session}.jsonl{,.zst}`;
  const files = globSync([`sessions/*/*/*/${name}`, `archived_sessions/**/${name}`], { cwd: home });
  return files.map((file) => join(home, file));
}

const META = /^.{0,200}"type":"session_meta"/;
/** Every record of the newest format is numbered. */
const NUMBERED = /^\{"timestamp":"[^"]*","ordinal":/;

/**
 * The newest format in the file. The first record tells it, so no more is read where all known formats may be opened; a file can
 * have been continued in another one. Null: it cannot be read.
 */
async function formatOf(file: string, firstOnly: boolean): Promise<string | null> {
  let found = -1;
  let unknown: string | null = null;
  const lines = new LineReader(
    (line) => {
      if (unknown !== null || (firstOnly && found !== -1)) return;
      const format = META.test(line) ? formatIn(line) : NUMBERED.test(line) ? 'paginated' : 'legacy';
      if (!FORMATS.includes(format)) unknown = format;
      found = Math.max(found, FORMATS.indexOf(format));
    },
    () => {},
  );
  const bytes = createReadStream(file);
  try {
    for await (const chunk of file.endsWith('.zst') ? pipeline(bytes, createZstdDecompress(), () => {}) : bytes) {
      lines.push(chunk as Uint8Array);
      if (unknown !== null || (firstOnly && found !== -1)) break;
    }
    lines.end();
  } catch {
    return null;
  }
  return unknown ?? FORMATS[found] ?? null;
}

function formatIn(line: string): string {
  const { payload } = JSON.parse(line) as { payload?: unknown };
  const mode = isObject(payload) ? payload.history_mode : undefined;
  return typeof mode === 'string' ? mode : NUMBERED.test(line) ? 'paginated' : 'legacy';
}
