import type { Proof } from '../../../core/receipt.ts';
import type { Opened, OpenHow } from '../../../ports/agent.ts';
import type { RestoreRequest, StepFailure } from '../restore.ts';

/** Opens, and waits for a locked session as long as the settings allow. */
export async function openPatiently(
  how: OpenHow,
  noTools: boolean,
  request: RestoreRequest,
): Promise<Opened | StepFailure> {
  const { hold, agent, lock, signal } = request;
  for (;;) {
    signal.throwIfAborted();
    const opened = await agent.open({ how, sandbox: await hold.openSandbox(), noTools, signal });
    if (opened.ok || opened.reason !== 'locked') return opened;
    if (!(await lock.wait(signal))) return lockedOut(opened.message, request);
    const payload = { id: how.kind === 'resume' ? how.id : null, waits: lock.count, ms: lock.ms };
    await hold.lease.write({
      write: 'event',
      event: { kind: 'session.locked', turn: request.turn?.id ?? null, payload },
    });
  }
}

function lockedOut(message: string, { lock }: RestoreRequest): StepFailure {
  return {
    failure: `locked: ${message}`,
    final: {
      code: 'session_locked',
      message: `The agent's session stayed locked through ${lock.count} waits (${lock.ms} ms): ${message}`,
      hint: 'Nothing was sent. Try again when the other program has let go of it, or raise "lock" in the settings.',
    },
  };
}

/** Null: it is open. */
export function whyNot(opened: Opened | StepFailure): StepFailure | null {
  if ('failure' in opened) return opened;
  return opened.ok ? null : { failure: `the agent refused: ${opened.message}` };
}

/** Whether it stands, opened, where it is to; where that cannot be seen, as far as its agent can tell. */
export async function proveOpened(
  opened: Opened & { ok: true },
  expected: string | null,
  request: RestoreRequest,
): Promise<Proof> {
  if (!request.traits.position || expected === null) return opened.proof;
  return (await opened.session.position()) === expected ? 'proved' : 'refuted';
}

/** A step with no proof is taken under the policy "auto" only. */
export function tooWeak(proof: Proof, { settings }: RestoreRequest): boolean {
  return proof === 'none' && settings.policy !== 'auto';
}
