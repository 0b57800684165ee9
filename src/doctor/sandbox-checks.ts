import { lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode, ThroughlineError } from '../core/errors.ts';
import { isOwnSandbox, PROBE } from '../core/sandbox/sandbox-id.ts';
import { shellWord } from '../core/turn/quoted.ts';
import type { Finding } from '../ports/doctor.ts';
import type { Census } from '../ports/store/census.ts';
import { type DoctorParts, NO_REPAIR } from './parts.ts';

// Sandboxes and folders that no conversation has any more.

/** Ids of sandboxes: those of conversations, of worktrees, and hashes of the names of shared sandboxes. Other files are not ours. */
const OURS = /^(?:(?:tree-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})$/;

/**
 * The sandboxes that no conversation has. Call it after the sandboxes were listed: a conversation is stored before its sandbox is created,
 * so the sandbox of a new conversation does not count as left over.
 */
async function leftOver({ store }: DoctorParts, ids: readonly string[]): Promise<string[]> {
  const known = new Set((await store.census()).sandboxes);
  return ids.filter((id) => OURS.test(id) && !known.has(id));
}

/** For repairs: a conversation may have taken the name of a shared sandbox since. Throws `conflict` then. */
async function checkLeftOver(parts: DoctorParts, id: string): Promise<void> {
  if ((await leftOver(parts, [id])).length > 0) return;
  throw new ThroughlineError('conflict', 'A conversation uses it now.');
}

/** Directories of conversations that are not in the store. They may hold work, so they are moved and never deleted. */
export async function checkSandboxes(parts: DoctorParts): Promise<Finding[]> {
  const { root, isOurs, aside } = parts.sandboxes;
  const orphaned = await leftOver(parts, await namesIn(root));
  return orphaned.map((name) => ({
    check: 'sandboxes',
    subject: `directory ${join(root, name)}`,
    problem: isOurs
      ? 'It belongs to no conversation.'
      : 'It belongs to no conversation here; it may belong to one of another data home.',
    remedy: isOurs ? `Move it to ${aside}.` : null,
    repair: async () => {
      await checkLeftOver(parts, name);
      await moveAside(join(root, name), aside, name);
    },
  }));
}

/** The same on other machines. Nothing can be moved there, and other data homes may have sandboxes there: a person decides. */
export async function checkElsewhere(parts: DoctorParts): Promise<Finding[]> {
  const { sandboxes } = parts;
  if (sandboxes.areHere) return [];
  const found = { check: 'sandboxes', isNote: true };
  try {
    const { root, ids } = await sandboxes.list();
    return (await leftOver(parts, ids)).map((id) => ({
      ...{ ...found, subject: `sandbox ${id} in ${root}`, repairedBy: '--delete-left-over' as const },
      problem: 'It belongs to no conversation here; it may belong to one of another data home.',
      remedy: 'Delete it, unless programs run in it or unsaved work is in it.',
      repair: () => sandboxes.removeLeftOver(id, () => checkLeftOver(parts, id)),
    }));
  } catch (error) {
    if (!(error instanceof ThroughlineError)) throw error;
    const problem = `Cannot check whether some are left over: ${error.message} ${error.hint ?? ''}`.trim();
    return [{ ...found, subject: 'sandboxes on other machines', problem, ...NO_REPAIR }];
  }
}

/** No probe of an agent takes so long. */
const OLD_MS = 86_400_000;

/** Folders of probes of agents that were killed. They hold no work. */
export async function checkProbes({ sandboxes, clock }: DoctorParts): Promise<Finding[]> {
  const { root, isOurs } = sandboxes;
  if (!isOurs) return [];
  const probes = (await namesIn(root)).filter((name) => name.startsWith(PROBE)).map((name) => join(root, name));
  const ages = await Promise.all(probes.map(async (path) => ({ path, found: await lstat(path).catch(() => null) })));
  const old = ages.filter(({ found }) => found !== null && clock.now() - found.mtimeMs > OLD_MS);
  return old.map(({ path }) => ({
    check: 'sandboxes',
    subject: `directory ${path}`,
    problem: 'It was created to probe an agent, and the process was killed.',
    remedy: 'Delete it.',
    repair: () => rm(path, { recursive: true, force: true, maxRetries: 3 }),
  }));
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
}

/**
 * Sandboxes of erased conversations. One is deleted only if the erasure should have deleted it, but was interrupted. The others were kept on
 * purpose, and are only reported.
 */
export async function checkErased({ store, sandboxes }: DoctorParts, { erased }: Census): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { owner, conversation, sandbox, toDelete } of erased) {
    const path = await sandboxes.find(sandbox).catch((error: unknown) => {
      // It is on another machine, which cannot be reached now.
      if (!hasCode(error, 'agent_unavailable')) throw error;
      findings.push({
        ...{ check: 'erased', subject: `sandbox ${sandbox}`, isNote: true, ...NO_REPAIR },
        problem: `The conversation ${conversation} was erased. Cannot check whether its sandbox still exists: ${error.message}`,
      });
      return null;
    });
    // Several erased conversations may have shared a sandbox.
    if (path === null || findings.some(({ subject }) => subject === `directory ${path}`)) continue;
    const as = owner === 'local' ? '' : ` --as ${shellWord(owner)}`;
    const how = isOwnSandbox(sandbox, conversation)
      ? `"throughline erase ${conversation} --sandbox --yes${as}" deletes it.`
      : 'It had a name and was shared; delete it by hand.';
    const found = { check: 'erased', subject: `directory ${path}` };
    if (toDelete) {
      findings.push({
        ...found,
        problem: `It should have been deleted with the conversation ${conversation}, but still exists.`,
        remedy: 'Delete it.',
        repair: async () => {
          await store.eraseConversation(owner, conversation, { sandbox: path }); // refused if the sandbox is used again
          await sandboxes.remove(sandbox, { discard: true });
          await store.endErasure(owner, conversation);
        },
      });
    } else {
      const problem = `The conversation ${conversation} was erased. What its agents wrote is still here. ${how}`;
      findings.push({ ...found, problem, isNote: true, ...NO_REPAIR });
    }
  }
  return findings;
}

async function moveAside(path: string, aside: string, name: string): Promise<void> {
  try {
    await mkdir(aside, { recursive: true, mode: 0o700 });
    await rename(path, await unusedName(join(aside, name)));
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = code === 'EXDEV' ? 'it is on another file system' : message;
    throw new ThroughlineError('refused', `Cannot move it there: ${why}. Move it by hand.`, { cause });
  }
}

/** A directory of that name may have been moved there before, and is kept. */
async function unusedName(path: string): Promise<string> {
  for (let n = 1; ; n += 1) {
    const name = n === 1 ? path : `${path}.${n}`;
    if ((await lstat(name).catch(() => null)) === null) return name;
  }
}
