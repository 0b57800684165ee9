import { constants } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RequestError } from '@agentclientprotocol/sdk';
import { asObject } from './capabilities.ts';
import { inside } from './inside.ts';

const MOST_BYTES = 32 * 1024 * 1024;

/** Reads and writes text files for an agent, inside of these directories and nowhere else. */
export class ClientFiles {
  readonly #roots: readonly string[];

  constructor(roots: readonly string[]) {
    this.#roots = roots;
  }

  async read(params: unknown): Promise<{ content: string }> {
    const { path, line, limit } = asObject(params);
    const file = await this.#inside(path);
    // Not blocking: a pipe with nobody at its other end would be waited for.
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error) => {
      throw failed(path, error);
    });
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
    if (typeof content !== 'string') throw RequestError.invalidParams(undefined, 'content must be a text');
    const file = await this.#inside(path);
    await mkdir(dirname(file), { recursive: true });
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const handle = await open(file, flags, 0o666).catch((error) => {
      throw failed(path, error);
    });
    try {
      await regular(handle, path);
      await handle.truncate(0);
      await handle.writeFile(content);
    } finally {
      await handle.close();
    }
    return {};
  }

  async #inside(path: unknown): Promise<string> {
    const file = typeof path === 'string' ? await inside(path, this.#roots) : null;
    if (file === null) throw RequestError.invalidParams({ path }, `${path} lies outside of the sandbox's directory`);
    return file;
  }
}

async function regular(handle: Awaited<ReturnType<typeof open>>, path: unknown) {
  const stat = await handle.stat();
  if (!stat.isFile()) throw RequestError.invalidParams({ path }, `${path} is no file`);
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
