import { pipeline } from 'node:stream';
import { createZstdDecompress } from 'node:zlib';
import { isObject } from '../../../core/turn/content.ts';
import type { Folder } from '../../../ports/sandbox.ts';
import { isOlder } from '../../shared/install.ts';
import { parseObject } from '../../shared/json.ts';
import { LineReader } from '../../shared/lines.ts';
import type { Capabilities } from '../connection/capabilities.ts';
import { codexHome, OLD_CODEX_ACP } from './codex.ts';
import { endOf, outputOf, type Surroundings } from './surroundings.ts';

/*
 * The files in which Codex keeps its sessions.
 *
 * Which sessions a program for Codex may open. Codex keeps a session in a file that it appends to, and the format of these files
 * changes. An older Codex does not check the format: it appends records of its own format to a newer file, and afterwards no Codex opens
 * that session (seen with Zed's codex-acp 0.16.0 and a session of Codex 0.166). So we check the file before the program opens it.
 */

/** `session_meta.history_mode` of the files, oldest first. A Codex continues its own format and all older ones. */
const FORMATS = ['legacy', 'paginated'];

/** The first Codex that writes and continues the newest of these, and the first program that comes with it. */
const NEWEST_SINCE = { codex: '0.153.0', acp: '1.9.0' };

const UPDATE =
  'To update, run "throughline agents install codex", and remove "command" and CODEX_PATH from its settings';

/** Why this program must not open a session; null: it may. */
export async function whyNotOpened(
  session: string,
  { name, version }: Pick<Capabilities, 'name' | 'version'>,
  surroundings: Surroundings,
): Promise<string | null> {
  const isNewest = await continuesNewest(name, version, surroundings);
  const home = await surroundings.sandbox.folder(codexHome(surroundings));
  const files = await filesOf(session, home);
  // Codex has an index of files that may be elsewhere. A program that knows all formats damages none of them.
  if (files.length === 0)
    return isNewest ? null : `nothing shows that ${name} ${version} may open it: its file was not found`;
  for (const file of files) {
    const format = await formatOf(home, file, isNewest);
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

async function continuesNewest(name: string, version: string, surroundings: Surroundings): Promise<boolean> {
  if (!comesWithNewest(name, version)) return false;
  const { CODEX_PATH: own } = surroundings.env;
  if (own === undefined) return true;
  const [codex] = /\d+\.\d+\.\d+/.exec((await outputOf(surroundings, [own, '--version'])) ?? '') ?? [];
  return codex !== undefined && !isOlder(codex, NEWEST_SINCE.codex);
}

/**
 * Files are compressed after a week, and moved when a person archives the session. There may be an older copy beside the one that is
 * continued, and we do not know which of them the program opens.
 */
async function filesOf(session: string, home: Folder): Promise<string[]> {
  if (!/^[\w-]+$/.test(session)) return [];
  const isWanted = (name: string) =>
    name.startsWith('rollout-') && [`-${session}.jsonl`, `-${session}.jsonl.zst`].some((end) => name.endsWith(end));
  const found = await Promise.all(
    ['sessions', 'archived_sessions'].map((folder) => filesIn(home, folder, MOST_DEPTH, isWanted)),
  );
  return found.flat();
}

/** A folder for the year, one for the month, one for the day. */
const MOST_DEPTH = 3;

/** Links are not followed. A link with the name of such a file counts as a file that cannot be read. */
async function filesIn(
  home: Folder,
  folder: string,
  deeper: number,
  isWanted: (name: string) => boolean,
): Promise<string[]> {
  const found: string[] = [];
  // Where the folder itself is a link, `list` throws, and its files count as not found.
  for (const { name, kind } of (await home.list(folder).catch(() => null)) ?? []) {
    const path = `${folder}/${name}`;
    if (kind !== 'folder') found.push(...(isWanted(name) ? [path] : []));
    else if (deeper > 0) found.push(...(await filesIn(home, path, deeper - 1, isWanted)));
  }
  return found;
}

/** The last turn fits in the first of these, seldom only in the second. */
const END_BYTES = [1024 * 1024, 32 * 1024 * 1024];

/**
 * What commands of the last turn printed, by the ids of their tool calls. Codex (0.166) sends what a command prints from about a tenth of
 * a second after its start; if it sends anything, it leaves out what came before. Its file has all of it.
 */
export async function recordedOutputs(
  toolCallIds: readonly string[],
  session: string,
  surroundings: Surroundings,
): Promise<ReadonlyMap<string, string>> {
  const outputs = new Map<string, string>();
  const home = await surroundings.sandbox.folder(codexHome(surroundings)).catch(() => null);
  const file = home && (await filesOf(session, home)).find((name) => name.endsWith('.jsonl'));
  if (!file) return outputs;
  for (const most of END_BYTES) {
    const end = await endOf(home, file, most).catch(() => null);
    for (const line of end?.split('\n') ?? []) {
      const { id, aggregated_output: output } = line.includes('"CommandExecution"') ? itemIn(line) : {};
      if (typeof id === 'string' && typeof output === 'string') outputs.set(id, output);
    }
    if (end === null || toolCallIds.every((id) => outputs.has(id))) break;
  }
  return outputs;
}

/** The item of a record that says that it is complete. */
function itemIn(line: string): Readonly<Record<string, unknown>> {
  const { payload } = parseObject(line) ?? {};
  return isObject(payload) && payload.type === 'item_completed' && isObject(payload.item) ? payload.item : {};
}

const META = /^.{0,200}"type":"session_meta"/;
/** Every record of the newest format is numbered. */
const NUMBERED = /^\{"timestamp":"[^"]*","ordinal":/;

/**
 * The newest format in the file. `firstOnly`: reads only the first record, which is enough where all known formats may be opened. A file
 * may have been continued in another format. Null: it cannot be read.
 */
async function formatOf(home: Folder, file: string, firstOnly: boolean): Promise<string | null> {
  let found = -1;
  let unknown: string | null = null;
  const isKnown = () => unknown !== null || (firstOnly && found !== -1);
  const lines = new LineReader(
    (line) => {
      if (isKnown()) return;
      const format = META.test(line) ? formatIn(line) : NUMBERED.test(line) ? 'paginated' : 'legacy';
      if (!FORMATS.includes(format)) unknown = format;
      found = Math.max(found, FORMATS.indexOf(format));
    },
    () => {},
  );
  const bytes = bytesOf(home, file);
  let length = 0;
  try {
    for await (const chunk of file.endsWith('.zst') ? pipeline(bytes, createZstdDecompress(), () => {}) : bytes) {
      length += (chunk as Uint8Array).length;
      if (length > MOST_BYTES) return null;
      lines.push(chunk as Uint8Array);
      if (isKnown()) break;
    }
    lines.end();
  } catch {
    return null;
  }
  return unknown ?? FORMATS[found] ?? null;
}

const PIECE_BYTES = 1024 * 1024;
/** Reading more than this takes too long. A small compressed file may contain any amount. */
const MOST_BYTES = 1024 ** 3;

async function* bytesOf(home: Folder, file: string): AsyncGenerator<Uint8Array> {
  for (let from = 0; ; from += PIECE_BYTES) {
    const piece = await home.read(file, { from, most: PIECE_BYTES });
    if (piece !== null) yield piece.bytes;
    if (piece === null || piece.bytes.length < PIECE_BYTES) return;
  }
}

function formatIn(line: string): string {
  const { payload } = JSON.parse(line) as { payload?: unknown };
  const mode = isObject(payload) ? payload.history_mode : undefined;
  return typeof mode === 'string' ? mode : NUMBERED.test(line) ? 'paginated' : 'legacy';
}
