import { createHash, randomUUIDv7 } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { ThroughlineError } from '../core/errors.ts';
import { checkName } from '../core/names.ts';
import { parseRestore } from '../core/restore-settings.ts';
import type { ConversationSpec } from '../ports/engine.ts';
import type { NewConversation } from '../ports/store/conversations.ts';
import type { EngineParts } from './parts.ts';

/** A conversation as a caller describes it, checked, with everything decided that is pinned when it is made (R8). */
export async function newConversation(
  parts: EngineParts,
  owner: string,
  spec: ConversationSpec,
): Promise<NewConversation> {
  const id = randomUUIDv7();
  return {
    id,
    key: spec.key === undefined ? null : checkName(spec.key, 'key'),
    title: spec.title === undefined ? null : checkName(spec.title, 'title'),
    agent: spec.agent ?? null,
    driver: 'worker',
    sandbox: spec.sandbox === undefined ? id : sharedSandbox(owner, checkName(spec.sandbox, 'sandbox')),
    cwd: spec.cwd === undefined ? null : await existingDirectory(spec.cwd),
    place: parts.sandboxes.place,
    restore: parseRestore(spec.restore),
  };
}

/** A name is for people; the path of a sandbox is made from an id, so that no name can reach outside of it. */
function sharedSandbox(owner: string, name: string): string {
  return createHash('sha256').update(`${owner}\0${name}`).digest('hex').slice(0, 32);
}

async function existingDirectory(path: string): Promise<string> {
  const absolute = resolve(path);
  const found = await stat(absolute).catch(() => null);
  if (!found?.isDirectory()) {
    throw new ThroughlineError(
      'refused',
      `The working directory ${absolute} ${found ? 'is not a directory' : 'does not exist'}.`,
      {
        hint: 'Make it first, or leave it out to work in a sandbox of its own.',
      },
    );
  }
  return realpath(absolute);
}
