import { posix } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';
import type { DiskUse, Sandbox } from '../../core/sandbox/sandbox.ts';
import { AtMost } from '../../flow/at-most.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import type { Store } from '../../ports/store.ts';
import { LONGEST_TIMER_MS } from '../parts.ts';
import { runIn } from './command.ts';
import type { SandboxRequest } from './set-up.ts';

type MeasureRequest = Pick<SandboxRequest, 'parts' | 'owner' | 'id' | 'open'>;

/** Measures it and keeps the result. Null: it cannot be measured. */
export async function measure({ parts, owner, id, open }: MeasureRequest): Promise<DiskUse | null> {
  const found = await measuredIn(await open(), () => parts.clock.monotonic());
  if (found === null) return null;
  const disk = { ...found, copies: await parts.store.copiedBytes(owner, id), at: parts.clock.now() };
  await parts.store.changeSandbox(owner, id, { disk });
  return disk;
}

/** Measurements that callers ask for read a whole disk: one at a time in this process. */
const turns = new AtMost({ most: 1, longestMs: LONGEST_TIMER_MS });
const MOST_ASKED = 20;
/** A measurement is used again for this long. */
const KEPT_MS = 3_000;
/** So that an owner with many sandboxes does not delay others. */
const MOST_OF_OWNER = 10;
/** Measurements that run or wait, by id of the sandbox: all who ask for the same one share it. */
const asked = new WeakMap<Store, Map<string, { readonly owner: string; readonly end: Promise<unknown> }>>();

/** Measures a sandbox for a caller, unless that was just done. Throws `too_many` when too many measurements wait. */
export async function measureAsked(
  request: MeasureRequest & Pick<SandboxRequest, 'signal'>,
  { disk }: Sandbox,
): Promise<void> {
  const { parts, owner, id, signal } = request;
  const { store, clock } = parts;
  // The clock may have been set back since.
  if (disk !== null && Math.abs(clock.now() - disk.at) < KEPT_MS) return;
  const here = asked.get(store) ?? new Map();
  asked.set(store, here);
  if (!here.has(id)) {
    const own = [...here.values()].filter((one) => one.owner === owner).length;
    if (own >= MOST_OF_OWNER) throw tooMany(`${MOST_OF_OWNER} of your sandboxes`);
    if (here.size >= MOST_ASKED) throw tooMany(`${MOST_ASKED} sandboxes`);
    const measured = turns.run(signal, async () => {
      signal.throwIfAborted();
      await measure(request);
    });
    here.set(id, { owner, end: measured.finally(() => here.delete(id)) });
  }
  await here.get(id)?.end;
}

function tooMany(which: string): ThroughlineError {
  return new ThroughlineError('too_many', `${which} are being measured, or wait for that.`, {
    hint: 'Try again later. Without measuring, the last known size is shown.',
  });
}

const MEASURE_MS = 60_000;

/** The size of its folders, in bytes, measured by another program so that this process is not blocked. Null: it cannot be measured. */
async function measuredIn(
  sandbox: OpenSandbox,
  monotonic: () => number,
): Promise<Pick<DiskUse, 'work' | 'state'> | null> {
  const du = await sandbox.find('du');
  if (du === null) return null;
  const { work, state, home } = sandbox;
  // A home of the sandbox itself is beside the state. The home of the person is not counted.
  const owned = posix.dirname(home) === posix.dirname(state) ? [state, home] : [state];
  const options = { signal: AbortSignal.timeout(MEASURE_MS), timeoutMs: MEASURE_MS, monotonic };
  const { output } = await runIn(sandbox, [du, '-sk', work, ...owned], options);
  const kib = new Map([...output.matchAll(/^(\d+)\s+(.*)$/gm)].map(([, size, path]) => [path, Number(size)]));
  const sizes = [work, ...owned].map((path) => kib.get(path));
  const [inWork, ...others] = sizes.map((size) => (size ?? 0) * 1024);
  if (inWork === undefined || sizes.includes(undefined)) return null;
  return { work: inWork, state: others.reduce((sum, size) => sum + size, 0) };
}
