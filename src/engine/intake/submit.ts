import { randomUUIDv7 } from 'node:crypto';
import { checkText } from '../../core/arguments.ts';
import { parsePrompt } from '../../core/content.ts';
import type { Conversation } from '../../core/conversation.ts';
import { ThroughlineError } from '../../core/errors.ts';
import { given } from '../../core/given.ts';
import { parseRestore } from '../../core/restore-settings.ts';
import { hasEnded, type Turn, type TurnOptions } from '../../core/turn.ts';
import type { SubmitOptions } from '../../ports/engine.ts';
import type { Enqueued, NewTurn } from '../../ports/store/turns.ts';
import type { EngineParts } from '../parts.ts';
import type { Worker } from '../worker/worker.ts';
import { checkAgent } from './agents.ts';
import { checkDriver, findConversation } from './conversations.ts';

/** What turns are accepted by. */
interface Acceptance {
  readonly parts: EngineParts;
  readonly worker: Worker;
}

/** Has a prompt accepted, durably (R3). What can never be honoured is refused here, and nothing is stored. */
export async function submit(
  by: Acceptance,
  owner: string,
  conversation: string,
  prompt: unknown,
  options: SubmitOptions,
): Promise<Enqueued> {
  const blocks = parsePrompt(prompt);
  checkAgent(by.parts, options.agent);
  const found =
    by.worker.heldConversation(owner, conversation) ?? (await findConversation(by.parts.store, owner, conversation));
  checkDriver(found);
  return accept(by, found, {
    requestId: options.requestId ?? null,
    agent: options.agent ?? null,
    prompt: blocks,
    options: turnOptions(options),
    retryOf: null,
  });
}

/** The same for the prompt of a turn that has ended. The session that it named is not named again. */
export async function retry(by: Acceptance, owner: string, ended: Turn, requestId: string | null): Promise<Enqueued> {
  const { id, conversation, agent, prompt, state } = ended;
  const found = await findConversation(by.parts.store, owner, conversation);
  checkDriver(found);
  if (!hasEnded(state)) {
    throw new ThroughlineError('conflict', `The turn is still ${state}.`, {
      hint: 'Cancel it first, or wait for its end.',
    });
  }
  const { session: _, ...options } = ended.options;
  return accept(by, found, { requestId, agent, prompt, options, retryOf: id });
}

async function accept(
  { parts, worker }: Acceptance,
  conversation: Conversation,
  turn: Omit<NewTurn, 'id' | 'conversation' | 'defaultAgent' | 'agents'>,
): Promise<Enqueued> {
  if (turn.requestId !== null) checkText(turn.requestId, 'request id');
  const { owner, id } = conversation;
  const known = { defaultAgent: parts.settings.defaultAgent, agents: [...parts.agents.keys()] };
  const accepted = await parts.store.enqueue(owner, { id: randomUUIDv7(), conversation: id, ...known, ...turn });
  if (!hasEnded(accepted.turn.state)) worker.want(owner, id, accepted.turn.id);
  return accepted;
}

function turnOptions({ session, restore, permissions }: SubmitOptions): TurnOptions {
  if (session !== undefined) checkText(session, 'session id');
  if (permissions !== undefined && permissions !== 'ask' && permissions !== 'deny') {
    throw new ThroughlineError('invalid', 'permissions must be "ask" or "deny".');
  }
  const parsed = restore === undefined ? undefined : parseRestore(restore);
  if (session !== undefined && parsed?.policy === 'off') {
    throw new ThroughlineError(
      'invalid',
      'A turn that names its session goes on in it: that is not the policy "off".',
      {
        hint: 'Leave one of them out.',
      },
    );
  }
  if (session !== undefined && parsed?.rung) {
    throw new ThroughlineError('invalid', `A turn names either its session or its rung, not both.`, {
      hint: 'A session that is named is resumed; leave the rung out.',
    });
  }
  return given({ session, restore: parsed, permissions });
}
