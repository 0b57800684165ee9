import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { RequestError } from '@agentclientprotocol/sdk';
import { asObject } from '../connection/capabilities.ts';
import { openInside } from './inside.ts';

const MOST_BYTES = 32 * 1024 * 1024;

/** Reads and writes text files for an agent, only inside of the given directories. */
export class ClientFiles {
  readonly #roots: readonly string[];

  constructor(roots: readonly string[]) {
    this.#roots = roots;
  }

  async read(params: unknown): Promise<{ content: string }> {
    const { path, line, limit } = asObject(params);
    const handle = await this.#open(path, constants.O_RDONLY, false);
    try {
      const { size } = await regular(handle, path);
      if (size > MOST_BYTES) throw RequestError.invalidParams({ path }, `${path} is larger than ${MOST_BYTES} bytes`);
      return { content: linesOf(await handle.readFile('utf8'), line, limit) };
    } finally {
      await handle.close();
    }
  }

  async write(params: unknown): Promise<Record<string, never>> {
    const { path, content } = asObject(params);
    if (typeof content !== 'string') throw RequestError.invalidParams(undefined, 'content must be a string');
    const handle = await this.#open(path, constants.O_WRONLY | constants.O_CREAT, true);
    try {
      await regular(handle, path);
      await handle.truncate(0);
      await handle.writeFile(content);
    } finally {
      await handle.close();
    }
    return {};
  }

  async #open(path: unknown, flags: number, make: boolean): Promise<FileHandle> {
    // Not blocking: otherwise opening a pipe waits until somebody opens its other end.
    const all = flags | constants.O_NONBLOCK;
    const handle =
      typeof path === 'string'
        ? await openInside(path, this.#roots, all, make).catch((error) => {
            throw failed(path, error);
          })
        : null;
    if (handle === null) throw RequestError.invalidParams({ path }, `${path} is outside of the sandbox's directory`);
    return handle;
  }
}

async function regular(handle: FileHandle, path: unknown) {
  const stat = await handle.stat();
  if (!stat.isFile()) throw RequestError.invalidParams({ path }, `${path} is not a file`);
  return stat;
}

/** `line` counts from 1. */
function linesOf(text: string, line: unknown, limit: unknown): string {
  if (typeof line !== 'number' && typeof limit !== 'number') return text;
  const from = typeof line === 'number' ? Math.max(0, line - 1) : 0;
  const lines = text.split('\n');
  return lines.slice(from, typeof limit === 'number' ? from + limit : undefined).join('\n');
}

function failed(path: unknown, error: NodeJS.ErrnoException): Error {
  if (error.code === 'ENOENT') return RequestError.resourceNotFound(String(path));
  return RequestError.internalError({ path }, `${path}: ${error.code ?? error.message}`);
}
