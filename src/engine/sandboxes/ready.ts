import { ThroughlineError } from '../../core/errors.ts';
import type { Sandbox } from '../../core/sandbox/sandbox.ts';
import type { OpenedSandbox } from '../../ports/store/sandboxes.ts';
import type { EngineParts } from '../parts.ts';
import { waitFor } from './alone.ts';
import { measure } from './measure.ts';
import { type Entrance, setUp } from './set-up.ts';

/**
 * Makes a sandbox ready: records that this process has it open, so that nobody removes it; sets it up if that was not done; and checks its
 * size. Throws `refused`. Returns early when the signal aborts.
 */
export async function readySandbox(entrance: Entrance): Promise<void> {
  const { known } = entrance;
  const entered = known === undefined ? await enter(entrance) : { opened: 'same' as const, sandbox: known };
  if (entered === null) return;
  const { parts, tell } = entrance;
  const { opened, sandbox } = entered;
  const { id, name } = sandbox;
  if (opened !== 'same' && isAnnounced(parts, sandbox)) {
    tell({ kind: `sandbox.${opened}`, turn: null, payload: { id, name } });
  }
  if (opened !== 'created' && (await parts.sandboxes.find(id)) === null) {
    // Its files were deleted, or its rented machine is gone: it has to be set up again.
    if (sandbox.setup.length > 0) await parts.store.changeSandbox(entrance.owner, id, { setup: [] });
    await entrance.gone?.();
  }
  if (parts.settings.sandbox.setup.length > 0) await setUp(entrance);
  await checkSize(entrance, sandbox);
}

/** The own folder of a conversation is always made with it, so an event would say nothing new. */
function isAnnounced({ sandboxes, settings }: EngineParts, { name }: Pick<Sandbox, 'name'>): boolean {
  return name !== null || settings.sandbox.setup.length > 0 || sandboxes.rest !== undefined;
}

/** Waits until no other process has the sandbox alone. Null: the signal has aborted. */
async function enter(entrance: Entrance): Promise<OpenedSandbox | null> {
  const { parts, worker, owner, id, place, signal } = entrance;
  while (!signal.aborted) {
    const entered = await parts.store.openSandbox(owner, { id, place }, worker);
    if ('opened' in entered) return entered;
    await waitFor(entered.alone, entrance);
  }
  return null;
}

const MEBIBYTE = 1_048_576;

async function checkSize(entrance: Entrance, { name, id }: Pick<Sandbox, 'name' | 'id'>): Promise<void> {
  const { diskMb } = entrance.parts.settings.sandbox;
  if (diskMb === null || entrance.signal.aborted) return;
  const disk = await measure(entrance);
  if (disk === null) throw notMeasured(name ?? id);
  if (disk.work + disk.state <= diskMb * MEBIBYTE) return;
  const size = Math.ceil((disk.work + disk.state) / MEBIBYTE);
  throw new ThroughlineError(
    'refused',
    `The sandbox ${name ?? id} has ${size} MiB; the limit is ${diskMb} ("sandbox.diskMb").`,
    {
      hint: `Nothing was sent. Delete files in it ("throughline sandbox exec ${name ?? id} -- …"), or raise the limit.`,
    },
  );
}

/** A size that cannot be measured counts as too large: otherwise the limit would have no effect. */
function notMeasured(sandbox: string): ThroughlineError {
  return new ThroughlineError(
    'refused',
    `The size of the sandbox ${sandbox} cannot be measured, and "sandbox.diskMb" limits it.`,
    {
      hint: 'Nothing was sent. The command "du" measures it in the sandbox, for at most a minute. Install it there, delete files that it cannot read, or remove the limit.',
    },
  );
}
