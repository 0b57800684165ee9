import type { Conversation } from '../../core/conversation.ts';
import { hasCode, noSuchConversation, ThroughlineError } from '../../core/errors.ts';
import { checkHead } from '../../core/event.ts';
import { given } from '../../core/input/arguments.ts';
import { isOwnSandbox, isWorktree } from '../../core/sandbox/sandbox-id.ts';
import type { Erased, EraseOptions, Remains } from '../../ports/engine.ts';
import type { ErasedSession, UnfinishedErasure } from '../../ports/store/conversations.ts';
import type { EngineParts } from '../parts.ts';

/**
 * Erases what is stored, and with `sandbox` deletes the conversation's own sandbox as well. All checks come first. The store records that
 * the sandbox has to be deleted: if this process dies before that, the next one does it.
 */
export async function erase(
  parts: EngineParts,
  owner: string,
  idOrKey: string,
  { sandbox: withSandbox = false, discard = false, head }: EraseOptions,
): Promise<Erased> {
  const { store, sandboxes } = parts;
  if (head !== undefined) checkHead(head);
  const known = await store.findToErase(owner, idOrKey);
  // A conversation that was erased before is found only to delete its sandbox.
  if (known === null || (known.isErased && !withSandbox)) throw noSuchConversation(idOrKey);
  const { id, sandbox } = known;
  const directory = known.place === sandboxes.place ? await sandboxes.find(sandbox) : null;
  if (withSandbox) checkOwn(parts, known);
  if (withSandbox && directory !== null && !discard) await checkSaved(parts, known);
  if (known.isErased && directory === null) return { conversationId: id, remains: [] };
  const options = given({ head, sandbox: withSandbox && directory !== null ? directory : undefined });
  const { cwd, sessions } = await store.eraseConversation(owner, id, options);
  if (withSandbox) {
    // If it cannot be deleted, the caller decides what happens next, and not the next process.
    await deleteSandbox(parts, known, { sessions, directory, discard }).finally(() => store.endErasure(owner, id));
    await forgetSandbox(store, owner, sandbox);
  }
  const kept: Remains[] = withSandbox || directory === null ? [] : [{ what: 'sandbox', where: directory }];
  const named: Remains[] = cwd === null ? [] : [{ what: 'directory', where: cwd }];
  return { conversationId: id, remains: [...kept, ...named, ...sessionsOutside(sessions, directory)] };
}

/**
 * Deletes the sandboxes of erased conversations whose erasure was cut off by the end of its process. Everything was checked before that, so
 * nothing is asked again. Another living process may be about to do the same: then both delete it.
 */
export async function finishErasures(parts: EngineParts, left: readonly UnfinishedErasure[]): Promise<void> {
  for (const one of left) {
    await finishErasure(parts, one).catch((error: unknown) => {
      // Somebody works there meanwhile, it cannot be deleted, or its machine cannot be reached: the doctor lists it.
      if (!hasCode(error, 'refused', 'agent_unavailable')) throw error;
    });
  }
}

async function finishErasure(
  { store, sandboxes }: EngineParts,
  { owner, conversation, sandbox }: UnfinishedErasure,
): Promise<void> {
  const directory = await sandboxes.find(sandbox);
  if (directory !== null) {
    await store.eraseConversation(owner, conversation, { sandbox: directory }); // refused if it is used again
    await sandboxes.remove(sandbox, { discard: true });
  }
  await store.endErasure(owner, conversation);
  await forgetSandbox(store, owner, sandbox);
}

/** It is not listed if it was never opened, or if another process has deleted it as well. */
async function forgetSandbox(store: EngineParts['store'], owner: string, sandbox: string): Promise<void> {
  await store.leaveSandbox(owner, sandbox, 'destroyed', 'its conversation was erased').catch((error: unknown) => {
    if (!hasCode(error, 'not_found')) throw error;
  });
}

/** Only a directory that belongs to this conversation alone is deleted, and only by a process of its data home. */
function checkOwn(
  { sandboxes }: EngineParts,
  { id, sandbox, place }: Pick<Conversation, 'id' | 'sandbox' | 'place'>,
): void {
  const without = 'Erase the conversation without its sandbox';
  if (place !== sandboxes.place) {
    throw new ThroughlineError('refused', 'The sandbox is in another data home and cannot be deleted from here.', {
      hint: `${without}, or erase it there.`,
    });
  }
  if (!isOwnSandbox(sandbox, id)) {
    throw new ThroughlineError('refused', 'The sandbox has a name, and other conversations may share it.', {
      hint: `${without}. When no conversation needs it any more, "throughline sandbox rm" deletes it.`,
    });
  }
}

async function checkSaved(
  { sandboxes }: EngineParts,
  { id, sandbox }: Pick<Conversation, 'id' | 'sandbox'>,
): Promise<void> {
  const unsaved = isWorktree(sandbox) ? ((await sandboxes.worktrees?.unsaved(sandbox)) ?? 0) : 0;
  if (unsaved === 0) return;
  const files = unsaved === 1 ? 'a file' : `${unsaved} files`;
  throw new ThroughlineError('refused', `Its worktree has changes that are not committed, in ${files}.`, {
    hint: `Commit them ("throughline changes ${id} --commit MESSAGE"), or erase it with "discard" (--discard).`,
  });
}

/** Ends the agents first: they could write there, or replace a folder by a link, while it is deleted. */
async function deleteSandbox(
  { sandboxes }: EngineParts,
  { id, sandbox }: Pick<Conversation, 'id' | 'sandbox'>,
  { sessions, directory, discard }: { sessions: readonly ErasedSession[]; directory: string | null; discard: boolean },
): Promise<void> {
  for (const { process, agent } of sessions) {
    if (process === null || (await sandboxes.end(process)) === 'ended') continue;
    // Without its pid: it is on another machine or in another container, and callers may be anywhere.
    const message = `The conversation is erased. Its sandbox is not: ${agent} may still run in it, and cannot be ended from here.`;
    const where = directory === null ? 'there' : `in ${directory}, on the machine or in the container where it runs`;
    throw new ThroughlineError('conflict', message, {
      hint: `End the programs ${where}. Then erase ${id} again with its sandbox.`,
    });
  }
  await sandboxes.remove(sandbox, { discard });
}

/** Sessions that their agents keep elsewhere, for example in the home of the user. */
function sessionsOutside(sessions: readonly ErasedSession[], directory: string | null): Remains[] {
  const outside = new Map<string, Remains>();
  for (const { id, agent, storage } of sessions) {
    // The name of a storage is `kind:path`.
    const path = /:(\/.*)$/s.exec(storage)?.[1] ?? null;
    if (path !== null && directory !== null && `${path}/`.startsWith(`${directory}/`)) continue;
    outside.set(`${id} ${storage}`, { what: 'session', where: path ?? storage, agent, sessionId: id });
  }
  return [...outside.values()];
}
