import { randomUUID } from 'node:crypto';
import { linkSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/* Files that appear with their complete content, readable by this user alone. Links are never followed. */

/** Creates the file unless it exists. If several processes do so at once, the first one wins; the others return without an error. */
export function makeOnce(file: string, content: string): void {
  const draft = writeDraft(file, content);
  try {
    linkSync(draft, file);
  } catch (error) {
    if (!isThere(error)) makeWithoutLinks(file, content);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Replaces whatever is there. */
export function replaceWhole(file: string, content: string): void {
  const draft = writeDraft(file, content);
  try {
    renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true }); // when it could not be renamed
  }
}

/** Some file systems have no links. There, other processes may see the file before its content. */
function makeWithoutLinks(file: string, content: string): void {
  try {
    writeNew(file, content);
  } catch (error) {
    if (!isThere(error)) throw error;
  }
}

function writeDraft(file: string, content: string): string {
  const draft = `${file}.${randomUUID()}`;
  try {
    writeNew(draft, content);
  } catch (error) {
    rmSync(draft, { force: true }); // a full disk leaves an empty file
    throw error;
  }
  return draft;
}

/** O_CREAT and O_EXCL: fails when a file or a link exists. */
function writeNew(file: string, content: string): void {
  writeFileSync(file, content, { flag: 'wx', mode: 0o600 });
}

function isThere(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EEXIST';
}
