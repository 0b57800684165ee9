import { randomUUID } from 'node:crypto';
import { isObject } from '../../core/content.ts';
import type { PermissionOption } from '../../core/permission.ts';
import type { AgentEvent } from '../../ports/agent.ts';
import type { PermissionDecision, PermissionQuestion } from './connection.ts';
import { toolCallFields } from './transcript/tool-calls.ts';

const ONCE: PermissionOption = { optionId: 'allow', name: 'Allow', kind: 'allow_once' };
const ALWAYS: PermissionOption = { optionId: 'allow_always', name: 'Always allow', kind: 'allow_always' };
const REJECT: PermissionOption = { optionId: 'reject', name: 'Reject', kind: 'reject_once' };

/** It is read by whoever looks why a tool did not run. */
const UNASKED =
  'What may run without a question is set in Claude’s settings ("permissions.allow"), or by the agent’s option "permissionMode".';

interface Open {
  readonly question: PermissionQuestion;
  decide(decision: PermissionDecision): void;
}

/** Claude's questions on their way to whoever answers, and the answers on their way back. */
export class Questions {
  readonly #open = new Map<string, Open>();
  /** Null: no turn runs, so nobody could answer. */
  #ask: ((event: AgentEvent) => void) | null = null;

  /** From now on, questions belong to this turn. */
  begin(ask: (event: AgentEvent) => void): void {
    this.#ask = ask;
  }

  /** The turn is over: what is still open is a no. */
  end(): void {
    this.#ask = null;
    for (const id of [...this.#open.keys()]) this.answer(id, null);
  }

  ask(question: PermissionQuestion): Promise<PermissionDecision> {
    const ask = this.#ask;
    if (ask === null || question.signal.aborted)
      return Promise.resolve(denied(`Nobody is there to answer. ${UNASKED}`));
    const id = randomUUID();
    const { toolName, toolUseId, input, title } = question;
    return new Promise((decide) => {
      this.#open.set(id, { question, decide });
      question.signal.addEventListener('abort', () => this.answer(id, null), { once: true });
      ask({
        type: 'permission',
        id,
        title: title ?? titleOf(question),
        toolCall: toolCallFields(toolUseId ?? id, toolName, input),
        options: question.suggestions.length > 0 ? [ONCE, ALWAYS, REJECT] : [ONCE, REJECT],
      });
    });
  }

  answer(id: string, optionId: string | null): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    this.#open.delete(id);
    open.decide(decisionOf(open.question, optionId));
  }
}

function decisionOf({ input, suggestions }: PermissionQuestion, optionId: string | null): PermissionDecision {
  if (optionId === ONCE.optionId) return { behavior: 'allow', updatedInput: input };
  if (optionId === ALWAYS.optionId) {
    return { behavior: 'allow', updatedInput: input, updatedPermissions: rulesFor(suggestions) };
  }
  return denied(optionId === null ? `Nobody answered the question. ${UNASKED}` : 'The person did not allow this.');
}

function denied(message: string): PermissionDecision {
  return { behavior: 'deny', message };
}

/**
 * For this session only: Claude would write the rule into the settings of the person or the project, and those are not ours to
 * edit. A change of the mode, which allows far more than was asked, is taken only where Claude offers no rule.
 */
function rulesFor(suggestions: readonly unknown[]): unknown[] {
  const known = suggestions.filter(isObject);
  const rules = known.filter(({ type }) => type !== 'setMode');
  const chosen = rules.some(({ type }) => type === 'addRules') ? rules : known;
  return chosen.map((suggestion) => ({ ...suggestion, destination: 'session' }));
}

function titleOf({ toolName, input }: PermissionQuestion): string {
  const what = [input.command, input.file_path, input.path, input.url].find((value) => typeof value === 'string');
  return what === undefined ? `Claude wants to use ${toolName}` : `Claude wants to use ${toolName}: ${what}`;
}
