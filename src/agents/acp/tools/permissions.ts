import { randomUUID } from 'node:crypto';
import { type RequestPermissionResponse as Answer, RequestError } from '@agentclientprotocol/sdk';
import { isObject } from '../../../core/turn/content.ts';
import type { PermissionKind, PermissionOption } from '../../../core/turn/permission.ts';
import type { AgentEvent } from '../../../ports/agent.ts';
import { asObject } from '../../shared/json.ts';

type Question = Extract<AgentEvent, { type: 'permission' }>;

const CANCELLED: Answer = { outcome: { outcome: 'cancelled' } };
const KINDS = /^(?:allow|reject)_(?:once|always)$/;

/** The permission questions of an agent that are not answered yet. */
export class Questions {
  readonly #open = new Map<string, (answer: Answer) => void>();

  /** `ask` passes the question on to the turn; null: there is no turn, so nobody can answer. */
  async put(params: unknown, ask: ((question: Question) => void) | null): Promise<Answer> {
    const { toolCall, options } = asObject(params);
    const choices = optionsOf(options);
    if (ask === null || choices.length === 0) return CANCELLED;
    const { title, toolCallId } = asObject(toolCall);
    const id = randomUUID();
    const { promise, resolve } = Promise.withResolvers<Answer>();
    this.#open.set(id, resolve);
    const named = [title, toolCallId].find((text) => typeof text === 'string' && text !== '');
    ask({ type: 'permission', id, title: String(named ?? 'a tool'), toolCall, options: choices });
    return promise;
  }

  answer(id: string, optionId: string | null): void {
    this.#open.get(id)?.(optionId === null ? CANCELLED : { outcome: { outcome: 'selected', optionId } });
    this.#open.delete(id);
  }

  /** The turn is over or cancelled: nobody will answer. */
  cancelAll(): void {
    for (const resolve of this.#open.values()) resolve(CANCELLED);
    this.#open.clear();
  }
}

function optionsOf(options: unknown): PermissionOption[] {
  if (!Array.isArray(options)) throw RequestError.invalidParams(undefined, 'options must be an array');
  return options.filter(isObject).flatMap(({ optionId, name, kind }) => {
    if (typeof optionId !== 'string' || !KINDS.test(String(kind))) return [];
    return [{ optionId, name: typeof name === 'string' ? name : optionId, kind: kind as PermissionKind }];
  });
}
