import { noSuch, ThroughlineError } from '../../core/errors.ts';
import { checkLimit, given } from '../../core/input/arguments.ts';
import { type Actor, checkKey } from '../../core/input/names.ts';
import { inSeconds } from '../../core/limits/time-limits.ts';
import { toPublicSandbox, toPublicSteps, toPublicUse } from '../../core/public/sandbox.ts';
import { checkCommand, type ExecResult, type Sandbox } from '../../core/sandbox/sandbox.ts';
import { isWorktree } from '../../core/sandbox/sandbox-id.ts';
import type { EngineSandboxes } from '../../ports/engine/sandboxes.ts';
import { findConversation, namedSandbox } from '../intake/conversations.ts';
import type { EngineParts } from '../parts.ts';
import type { Worker } from '../worker/worker.ts';
import { whileUsed } from './alone.ts';
import { runIn } from './command.ts';
import { removeSandbox, restSandbox } from './leave.ts';
import { measureAsked } from './measure.ts';
import { readySandbox } from './ready.ts';
import type { SandboxRequest } from './set-up.ts';

/*
 * What can be done with a sandbox, and who may do it at the same time.
 *
 *   a turn, `open`    ready.ts    record that this process has it open ─▶ set-up.ts: run the steps that are missing ─▶ check its size
 *   `exec`            command.ts  make it ready, and run a command in it
 *   `rest`, `remove`  leave.ts    end its warm sessions, and stop or delete it; idle.ts does this for sandboxes that nobody uses
 *
 * Many turns and commands share a sandbox. Set-up, rest and removal need it alone: alone.ts has the leases for that. Whoever finds one
 * that is used alone waits; rest and removal are refused while somebody uses it.
 */

/** The most conversations that are shown with a sandbox. */
const MOST_USES = 100;

/** The verbs for the sandboxes of an owner. */
export function sandboxesOf(parts: EngineParts, worker: Worker, { owner, by }: Actor): EngineSandboxes {
  const { store, sandboxes } = parts;
  const find = async (idOrName: string): Promise<Sandbox> => {
    const sandbox = await store.findSandbox(owner, idOrName);
    if (sandbox === null) throw noSuch('sandbox', idOrName);
    return sandbox;
  };
  const requestFor = ({ id, place }: Sandbox): SandboxRequest => {
    checkHere(place, sandboxes.place);
    return {
      ...{ parts, worker: worker.self, owner, id, place, signal: worker.shutdown },
      open: async () => sandboxes.open(id, { cwd: isWorktree(id) ? await repositoryOf(parts, owner, id) : null }),
      tell: () => {},
    };
  };
  const leaveRequest = async (idOrName: string) => {
    const sandbox = await find(idOrName);
    checkHere(sandbox.place, sandboxes.place);
    return { parts, worker, sandbox, by, reason: `${by} asked for it` };
  };
  return {
    async list({ limit, before } = {}) {
      const page = { limit: checkLimit(limit, 100), ...given({ before }) };
      return (await store.listSandboxes(owner, page)).map(toPublicSandbox);
    },
    diskUse: () => store.diskUse(owner),
    async show(idOrName, { measure = false } = {}) {
      const known = await find(idOrName);
      if (measure && known.openedAt !== null) await measureAsked(requestFor(known), known);
      const sandbox = await find(known.id);
      const uses = await store.sandboxUses(owner, sandbox.id, MOST_USES);
      return { sandbox: toPublicSandbox(sandbox), setup: toPublicSteps(sandbox.setup), uses: uses.map(toPublicUse) };
    },
    async of(conversation) {
      const { id, sandbox } = await findConversation(store, owner, conversation);
      const [newest] = await store.sessions(owner, id, { limit: 1 });
      return toPublicUse({ owner, sandbox, conversation: id, session: newest?.id ?? null });
    },
    async open(name) {
      const sandbox = await find(await namedSandbox(parts, owner, checkKey(name, 'sandbox')));
      await readySandbox(requestFor(sandbox));
      return toPublicSandbox(await find(sandbox.id));
    },
    async exec(idOrName, command) {
      checkCommand(command);
      return execIn(requestFor(await find(idOrName)), command);
    },
    async rest(idOrName) {
      const request = await leaveRequest(idOrName);
      await restSandbox(request);
      return toPublicSandbox(await find(request.sandbox.id));
    },
    async remove(idOrName, { force = false } = {}) {
      const request = await leaveRequest(idOrName);
      await removeSandbox(request, force);
      return { sandboxId: request.sandbox.id };
    },
  };
}

/**
 * Runs a command of a caller. The limit is counted from here, not from its start, so that a client that waits a little longer always gets
 * the answer.
 */
function execIn(asked: SandboxRequest, command: readonly string[]): Promise<ExecResult> {
  const { parts, id, open } = asked;
  const { execMs: timeoutMs } = parts.settings;
  const late = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([asked.signal, late]);
  const request = { ...asked, signal };
  return whileUsed(request, async (take) => {
    await readySandbox(request);
    await take();
    if (late.aborted) throw notReady(id, timeoutMs);
    const ran = await runIn(await open(), command, { signal, timeoutMs, monotonic: () => parts.clock.monotonic() });
    const { code, signal: endedBy, stdout, stderr, ms } = ran;
    if (asked.signal.aborted) throw new ThroughlineError('closed', 'Throughline was closed while the command ran.');
    const timedOut = late.aborted && code === null;
    if (code === null && endedBy === null && !timedOut) throw machineLost();
    const cut = stdout.isCut || stderr.isCut;
    const texts = { stdout: stdout.text.toWellFormed(), stderr: stderr.text.toWellFormed() };
    return { code, signal: endedBy, timedOut, ...texts, cut, ms };
  });
}

function notReady(id: string, ms: number): ThroughlineError {
  return new ThroughlineError(
    'timed_out',
    `The sandbox was not ready after ${inSeconds(ms / 1_000)}. Nothing was run.`,
    {
      hint: `"throughline sandbox open" and every turn set it up without this limit; "throughline sandbox show ${id}" shows how far it is.`,
    },
  );
}

function machineLost(): ThroughlineError {
  return new ThroughlineError('agent_unavailable', 'The connection to the machine of the sandbox was lost.', {
    hint: 'The command was ended there. Check what it has done before you repeat it.',
  });
}

function checkHere(place: string, here: string): void {
  if (place === here) return;
  throw new ThroughlineError('refused', 'The sandbox is in another data home.', { hint: 'Use it from there.' });
}

/** A worktree is opened with the directory of the conversation that it belongs to. */
async function repositoryOf({ store }: EngineParts, owner: string, id: string): Promise<string | null> {
  const [use] = await store.sandboxUses(owner, id, 1);
  const conversation = use === undefined ? null : await store.findConversation(owner, use.conversation);
  if (conversation !== null) return conversation.cwd;
  throw new ThroughlineError('refused', 'No conversation works in this worktree any more.', {
    hint: '"throughline sandbox rm" removes it.',
  });
}
