import { ThroughlineError } from '../../core/errors.ts';
import type { Sandbox } from '../../core/sandbox/sandbox.ts';
import type { OpenedSandbox } from '../../ports/store/sandboxes.ts';
import type { EngineParts } from '../parts.ts';
import { waitFor } from './alone.ts';
import { measure } from './measure.ts';
import { type Entrance, setUp } from './set-up.ts';

/**
 * Makes a sandbox ready: notes that this process opens it, which keeps it from being removed; sets it up where that was not done; and
 * refuses one that is too large. Throws `refused`. Returns early when the signal aborts.
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
    // Somebody has deleted its files, and what was set up with them; or a rented machine is gone.
    if (sandbox.setup.length > 0) await parts.store.changeSandbox(entrance.owner, id, { setup: [] });
    await entrance.gone?.();
  }
  if (parts.settings.sandbox.setup.length > 0) await setUp(entrance);
  await checkSize(entrance, sandbox);
}

/** A folder of one conversation alone is made with it, and says nothing new. */
function isAnnounced({ sandboxes, settings }: EngineParts, { name }: Pick<Sandbox, 'name'>): boolean {
  return name !== null || settings.sandbox.setup.length > 0 || sandboxes.rest !== undefined;
}

/** Waits until no other process has it alone. Null: the signal has aborted. */
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
    `The sandbox ${name ?? id} has ${size} MiB, and may have ${diskMb} ("sandbox.diskMb").`,
    {
      hint: `Nothing was sent. Delete files in it ("throughline sandbox exec ${name ?? id} -- …"), or raise the limit.`,
    },
  );
}

/** A limit that nobody can check would be none. */
function notMeasured(sandbox: string): ThroughlineError {
  return new ThroughlineError(
    'refused',
    `The size of the sandbox ${sandbox} cannot be measured, and "sandbox.diskMb" limits it.`,
    {
      hint: 'Nothing was sent. It is measured by "du" in the sandbox, within a minute: install it there, delete files that it cannot read, or leave the limit out.',
    },
  );
}
