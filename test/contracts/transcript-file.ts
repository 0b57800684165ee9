import { existsSync, realpathSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { Transcript } from '../../src/agents/claude/transcript/file.ts';
import type { SessionStorage } from '../../src/agents/claude/transcript/locate.ts';
import type { Folder } from '../../src/ports/sandbox.ts';
import { localFolder } from '../../src/sandboxes/shared/local-folder.ts';

/** A transcript of a test, by its path. `root`: the trusted folder. Left out: the nearest one that exists. */
export function transcriptAt(file: string, root?: string): Transcript {
  const { folder, path } = placeOf(file, root);
  return new Transcript(folder, path);
}

/** A folder for transcripts, by its path. */
export function storageAt(directory: string, root?: string): SessionStorage {
  const { folder, path } = placeOf(directory, root);
  const fileOf = (id: string) => new Transcript(folder, `${path}/${id}.jsonl`);
  return { name: 'test', folder, path, fileOf };
}

function placeOf(path: string, root = nearest(dirname(path))): { readonly folder: Folder; readonly path: string } {
  return { folder: localFolder(realpathSync(root)), path: relative(root, path) };
}

function nearest(path: string): string {
  return existsSync(path) ? path : nearest(dirname(path));
}
