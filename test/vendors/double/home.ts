// For tests that run our own program with the doubles.
import { mkdtempSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Service } from './service.ts';

/** With these options, a program of ours uses the doubles. */
export const NODE_OPTIONS = `--import=${fileURLToPath(new URL('register.ts', import.meta.url))}`;

export class DoubleHome {
  readonly kind: 'vercel' | 'e2b';
  readonly service = new Service(realpathSync(mkdtempSync(join(tmpdir(), 'throughline-machines-'))));

  constructor(kind: 'vercel' | 'e2b') {
    this.kind = kind;
  }

  /** The settings of sandboxes. The doubles take the folder of their machines as the key. */
  get sandbox(): object {
    return { kind: this.kind, machine: { key: this.service.root, team: 'team', project: 'project' } };
  }

  /** The machine of a conversation. */
  machine(conversation: string): string {
    const isIts = (name = '') => name.endsWith(`-s-${conversation}`);
    const found = this.service.all().find(({ id, metadata }) => isIts(id) || isIts(metadata.name));
    if (found === undefined) throw new Error(`there is no machine for ${conversation}`);
    return found.id;
  }

  /** Where the files of a conversation's machine are on this machine. */
  files(conversation: string): string {
    return join(this.service.root, this.machine(conversation), 'files');
  }

  work(conversation: string): string {
    return join(this.files(conversation), '.throughline/sandboxes/main/work');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.service.dispose();
  }
}

/** Null: there is no such file. */
export function readOrNull(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

export const touch = (file: string) => writeFileSync(file, '');
