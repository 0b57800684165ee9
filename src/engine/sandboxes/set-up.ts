import { createHash } from 'node:crypto';
import { hasCode, ThroughlineError } from '../../core/errors.ts';
import type { EventDraft } from '../../core/event.ts';
import type { SetupResult } from '../../core/sandbox/sandbox.ts';
import type { SetupStep } from '../../core/sandbox/sandbox-settings.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import type { TurnFacts, WorkerInfo } from '../../ports/store/leases.ts';
import type { EngineParts } from '../parts.ts';
import { hold, newHolder, whileHeld } from './alone.ts';
import { runIn } from './command.ts';

/** A sandbox that a worker makes ready, for a turn or for a caller. */
export interface SandboxRequest {
  readonly parts: EngineParts;
  readonly worker: WorkerInfo;
  readonly owner: string;
  readonly id: string;
  readonly place: string;
  /** The sandbox as it is stored, if the worker has it open. Left out: it has to be opened. */
  readonly known?: NonNullable<TurnFacts['sandbox']>;
  /** Opens it; its set-up runs in its own working directory. */
  readonly open: () => Promise<OpenSandbox>;
  /** Called when its files are gone: what was opened before cannot be used. */
  readonly gone?: () => Promise<void>;
  /** Adds an event to the conversation. */
  readonly tell: (event: EventDraft) => void;
  /** Called when a step of the set-up writes something. */
  readonly heard?: () => void;
  readonly signal: AbortSignal;
}

/**
 * Runs the set-up steps that were not run in this sandbox yet: the first one that is new, has changed or failed, and all after it, because
 * they may need it. One process does this, others wait. Throws `refused` when a step fails; the next turn tries it again. Returns early
 * when the signal aborts.
 */
export async function setUp(request: SandboxRequest): Promise<void> {
  const { setup: steps } = request.parts.settings.sandbox;
  if ((await firstToRun(request, steps)) === steps.length) return;
  const holding = { ...request, worker: newHolder(request.worker) };
  if (!(await hold(holding))) return;
  const isLost = await whileHeld(holding, async (lost) => {
    await runSteps(request, AbortSignal.any([request.signal, lost]));
    return lost.aborted;
  });
  // Another process took the sandbox, or the store did not answer. The next call waits, or runs the remaining steps.
  if (isLost && !request.signal.aborted) await setUp(request);
}

async function firstToRun(
  { parts: { store }, owner, id }: SandboxRequest,
  steps: readonly SetupStep[],
): Promise<number> {
  const done = (await store.findSandbox(owner, id))?.setup ?? [];
  const first = steps.findIndex((step, n) => done[n]?.digest !== digestOf(step) || done[n]?.code !== 0);
  return first === -1 ? steps.length : first;
}

function digestOf({ name, command }: SetupStep): string {
  return createHash('sha256')
    .update(JSON.stringify([name, command]))
    .digest('hex');
}

async function runSteps(request: SandboxRequest, signal: AbortSignal): Promise<void> {
  const { parts, owner, id, tell } = request;
  const { setup: steps } = parts.settings.sandbox;
  // Another process may have run them while we waited.
  const first = await firstToRun(request, steps);
  const stored = await parts.store.findSandbox(owner, id);
  const results = [...(stored?.setup ?? [])].slice(0, first);
  for (const step of steps.slice(first)) {
    const result = await runStep(request, step, signal);
    // The step was stopped in the middle, so it has to run again.
    if (signal.aborted) return;
    results.push(result);
    await parts.store.changeSandbox(owner, id, { setup: results });
    if (result.code !== 0) break;
  }
  const ran = results.slice(first);
  if (ran.length === 0) return;
  const told = ran.map(({ name, ms, code }) => ({ name, ms, code }));
  tell({ kind: 'sandbox.set-up', turn: null, payload: { id, name: stored?.name ?? null, steps: told } });
  const failed = ran.at(-1);
  if (failed !== undefined && failed.code !== 0) throw stepFailed(failed, stored?.name ?? id);
}

async function runStep(request: SandboxRequest, step: SetupStep, signal: AbortSignal): Promise<SetupResult> {
  const { parts, open, heard } = request;
  const { name, command, timeoutMs } = step;
  const known = { name, digest: digestOf(step), at: parts.clock.now() };
  const monotonic = () => parts.clock.monotonic();
  try {
    const run = { signal, timeoutMs, monotonic, ...(heard && { heard }) };
    const { code, output, ms } = await runIn(await open(), command, run);
    const late = code === null && ms >= timeoutMs ? `\n(ended after ${timeoutMs / 1_000} s)` : '';
    return { ...known, code, ms, output: `${output}${late}`.trim() };
  } catch (error) {
    if (!hasCode(error, 'agent_unavailable')) throw error;
    return { ...known, ms: 0, code: null, output: error.message };
  }
}

function stepFailed({ name, code, output }: SetupResult, sandbox: string): ThroughlineError {
  const how = code === null ? 'did not finish' : `failed with exit code ${code}`;
  const last = output.split('\n').at(-1)?.slice(0, 300);
  return new ThroughlineError('refused', `The set-up step "${name}" ${how}${last ? `: ${last}` : '.'}`, {
    hint: `Nothing was sent. "throughline sandbox show ${sandbox}" has its output. The next turn tries it again.`,
  });
}
