import { noSuch } from '../../core/errors.ts';
import { checkLimit, given } from '../../core/input/arguments.ts';
import { toPublicSandbox, toPublicSteps } from '../../core/public/sandbox.ts';
import type { Sandbox } from '../../core/sandbox/sandbox.ts';
import type { EngineSandboxes } from '../../ports/engine/sandboxes.ts';
import { findConversation } from '../intake/conversations.ts';
import type { EngineParts } from '../parts.ts';

/** The most conversations that are shown with a sandbox. */
const MOST_USES = 100;

/** What an owner does with sandboxes. */
export function sandboxesOf({ store }: EngineParts, owner: string): EngineSandboxes {
  const found = async (idOrName: string): Promise<Sandbox> => {
    const sandbox = await store.findSandbox(owner, idOrName);
    if (sandbox === null) throw noSuch('sandbox', idOrName);
    return sandbox;
  };
  return {
    async list({ limit, before } = {}) {
      const page = { limit: checkLimit(limit, 100), ...given({ before }) };
      return (await store.listSandboxes(owner, page)).map(toPublicSandbox);
    },
    async show(idOrName) {
      const sandbox = await found(idOrName);
      const uses = await store.sandboxUses(owner, sandbox.id, MOST_USES);
      return { sandbox: toPublicSandbox(sandbox), setup: toPublicSteps(sandbox.setup), uses };
    },
    async of(conversation) {
      const { id, sandbox } = await findConversation(store, owner, conversation);
      const [newest] = await store.sessions(owner, id, { limit: 1 });
      return { owner, sandbox, conversation: id, session: newest?.id ?? null };
    },
  };
}
