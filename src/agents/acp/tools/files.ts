import { isAbsolute, relative, sep } from 'node:path';
import { RequestError } from '@agentclientprotocol/sdk';
import { ThroughlineError } from '../../../core/errors.ts';
import type { Folder, OpenSandbox } from '../../../ports/sandbox.ts';
import { asObject } from '../../shared/json.ts';

/** Something in a directory in which the agent may act. It need not exist. */
interface Place {
  readonly folder: Folder;
  /** In the folder. */
  readonly path: string;
  /** Absolute, links resolved. */
  readonly full: string;
}

/** The directories of a sandbox in which its agent may act. */
export interface Directories {
  readonly sandbox: OpenSandbox;
  readonly roots: readonly string[];
}

/**
 * Resolves a path of the agent. Links that stay inside are followed, here and only once: if somebody puts another link on the way
 * afterwards, the folder refuses it.
 */
export async function locate({ sandbox, roots }: Directories, given: unknown): Promise<Place> {
  if (typeof given === 'string' && isAbsolute(given) && !given.includes('\0')) {
    const full = await sandbox.realPath(given);
    for (const root of roots) {
      const folder = await sandbox.folder(root);
      const way = relative(folder.path, full);
      const isOutside = way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way);
      if (!isOutside) return { folder, path: way.replaceAll(sep, '/'), full };
    }
  }
  throw RequestError.invalidParams({ path: given }, `${given} is outside of the sandbox's directory`);
}

/** Turns errors of the sandbox into errors of the protocol. */
export async function answered<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof ThroughlineError)) throw error;
    if (error.code === 'refused') throw RequestError.invalidParams(undefined, error.message);
    throw RequestError.internalError(undefined, error.message);
  }
}

const MOST_BYTES = 32 * 1024 * 1024;
/** The mode with which programs create files of a project: the umask decides who may read them. */
const MODE = 0o666;

/** Reads a text file for an agent, only inside of its directories. */
export async function readTextFile(directories: Directories, params: unknown): Promise<{ content: string }> {
  const { path: given, line, limit } = asObject(params);
  const { folder, path } = await locate(directories, given);
  const file = await answered(folder.read(path, { most: MOST_BYTES }));
  if (file === null) throw RequestError.resourceNotFound(String(given));
  if (file.size > MOST_BYTES) {
    throw RequestError.invalidParams({ path: given }, `${given} is larger than ${MOST_BYTES} bytes`);
  }
  return { content: linesOf(Buffer.from(file.bytes).toString('utf8'), line, limit) };
}

/** Writes a text file for an agent, only inside of its directories. Makes the missing folders. */
export async function writeTextFile(directories: Directories, params: unknown): Promise<Record<string, never>> {
  const { path: given, content } = asObject(params);
  if (typeof content !== 'string') throw RequestError.invalidParams(undefined, 'content must be a string');
  const { folder, path } = await locate(directories, given);
  await answered(folder.replace(path, content, { mode: MODE }));
  return {};
}

/** `line` counts from 1. */
function linesOf(text: string, line: unknown, limit: unknown): string {
  if (typeof line !== 'number' && typeof limit !== 'number') return text;
  const from = typeof line === 'number' ? Math.max(0, line - 1) : 0;
  const lines = text.split('\n');
  return lines.slice(from, typeof limit === 'number' ? from + limit : undefined).join('\n');
}
