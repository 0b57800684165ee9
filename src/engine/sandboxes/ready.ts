import { ThroughlineError } from '../../core/errors.ts';
import type { Sandbox } from '../../core/sandbox/sandbox.ts';
import type { OpenedSandbox } from '../../ports/store/sandboxes.ts';
import type { EngineParts } from '../parts.ts';
import { waitForHolder } from './alone.ts';
import { measure } from './measure.ts';
import { type SandboxRequest, setUp } from './set-up.ts';

/**
 * Makes a sandbox ready: records that this process has it open, so that nobody removes it; sets it up if that was not done; and checks its
 * size. Throws `refused`. Returns early when the signal aborts.
 */
export async function readySandbox(request: SandboxRequest): Promise<void> {
  const { known } = request;
  const stored = known === undefined ? await openStored(request) : { opened: 'same' as const, sandbox: known };
  if (stored === null) return;
  const { parts, tell } = request;
  const { opened, sandbox } = stored;
  const { id, name } = sandbox;
  if (opened !== 'same' && isAnnounced(parts, sandbox)) {
    tell({ kind: `sandbox.${opened}`, turn: null, payload: { id, name } });
  }
  if (opened !== 'created' && (await parts.sandboxes.find(id)) === null) {
    // Its files were deleted, or its rented machine is gone: it has to be set up again.
    if (sandbox.setup.length > 0) await parts.store.changeSandbox(request.owner, id, { setup: [] });
    await request.gone?.();
  }
  if (parts.settings.sandbox.setup.length > 0) await setUp(request);
  await checkSize(request, sandbox);
}

/** The own folder of a conversation is always made with it, so an event would say nothing new. */
function isAnnounced({ sandboxes, settings }: EngineParts, { name }: Pick<Sandbox, 'name'>): boolean {
  return name !== null || settings.sandbox.setup.length > 0 || sandboxes.rest !== undefined;
}

/** Waits until no other process has the sandbox alone. Null: the signal has aborted. */
async function openStored(request: SandboxRequest): Promise<OpenedSandbox | null> {
  const { parts, worker, owner, id, place, signal } = request;
  while (!signal.aborted) {
    const stored = await parts.store.openSandbox(owner, { id, place }, worker);
    if ('opened' in stored) return stored;
    await waitForHolder(stored.alone, request);
  }
  return null;
}

const MEBIBYTE = 1_048_576;

async function checkSize(request: SandboxRequest, { name, id }: Pick<Sandbox, 'name' | 'id'>): Promise<void> {
  const { diskMb } = request.parts.settings.sandbox;
  if (diskMb === null || request.signal.aborted) return;
  const disk = await measure(request);
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
