import { randomUUID } from 'node:crypto';
import { linkSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/** Files that appear with their whole content, for this user alone. Never through a link: what is new is made by us. */

/** Makes the file, unless it is there: of several at once the first one succeeds, and nobody hears that others were later. */
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

/** Puts it in the place of whatever is there. */
export function replaceWhole(file: string, content: string): void {
  renameSync(writeDraft(file, content), file);
}

/** Some file systems have no links. There the others may see the file before its content. */
function makeWithoutLinks(file: string, content: string): void {
  try {
    writeNew(file, content);
  } catch (error) {
    if (!isThere(error)) throw error;
  }
}

function writeDraft(file: string, content: string): string {
  const draft = `${file}.${randomUUID()}`;
  writeNew(draft, content);
  return draft;
}

/** O_CREAT and O_EXCL: neither a file nor a link may be there. */
function writeNew(file: string, content: string): void {
  writeFileSync(file, content, { flag: 'wx', mode: 0o600 });
}

function isThere(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EEXIST';
}
