import { randomUUID } from 'node:crypto';
import { isObject } from '../../../core/turn/content.ts';
import type { PermissionOption } from '../../../core/turn/permission.ts';
import type { AgentEvent } from '../../../ports/agent.ts';
import type { PermissionDecision, PermissionQuestion } from '../connection.ts';
import { askedDiffs } from '../transcript/diffs.ts';
import { toolCallFields } from '../transcript/updates.ts';

const ONCE: PermissionOption = { optionId: 'allow', name: 'Allow', kind: 'allow_once' };
const ALWAYS: PermissionOption = { optionId: 'allow_always', name: 'Always allow', kind: 'allow_always' };
const REJECT: PermissionOption = { optionId: 'reject', name: 'Reject', kind: 'reject_once' };

/** Tells the user why a tool did not run. */
const HOW_TO_ALLOW =
  'Claude’s settings ("permissions.allow") and the agent’s option "permissionMode" say which tools run without a question.';

interface Open {
  readonly question: PermissionQuestion;
  decide(decision: PermissionDecision): void;
}

/** Passes Claude's permission questions to the running turn, and the answers back. */
export class Questions {
  readonly #open = new Map<string, Open>();
  /** Null: no turn runs, so nobody could answer. */
  #ask: ((event: AgentEvent) => void) | null = null;

  /** A turn begins: questions go to it. */
  begin(ask: (event: AgentEvent) => void): void {
    this.#ask = ask;
  }

  /** The turn is over: open questions are denied. */
  end(): void {
    this.#ask = null;
    for (const id of [...this.#open.keys()]) this.answer(id, null);
  }

  ask(question: PermissionQuestion): Promise<PermissionDecision> {
    const ask = this.#ask;
    if (ask === null || question.signal.aborted)
      return Promise.resolve(denied(`No turn is running, so nobody can answer. ${HOW_TO_ALLOW}`));
    const id = randomUUID();
    const { toolName, toolUseId, input, title } = question;
    return new Promise((decide) => {
      this.#open.set(id, { question, decide });
      question.signal.addEventListener('abort', () => this.answer(id, null), { once: true });
      ask({
        type: 'permission',
        id,
        title: title ?? titleOf(question),
        toolCall: { ...toolCallFields(toolUseId ?? id, toolName, input), ...contentOf(toolName, input) },
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

function contentOf(toolName: string, input: unknown): { readonly content?: readonly object[] } {
  const content = askedDiffs(toolName, input);
  return content.length === 0 ? {} : { content };
}

function decisionOf({ input, suggestions }: PermissionQuestion, optionId: string | null): PermissionDecision {
  if (optionId === ONCE.optionId) return { behavior: 'allow', updatedInput: input };
  if (optionId === ALWAYS.optionId) {
    return { behavior: 'allow', updatedInput: input, updatedPermissions: rulesFor(suggestions) };
  }
  return denied(optionId === null ? `The question was not answered. ${HOW_TO_ALLOW}` : 'The user did not allow this.');
}

function denied(message: string): PermissionDecision {
  return { behavior: 'deny', message };
}

/**
 * Rules for this session only: otherwise Claude would write them into the settings files of the user or the project, which we do
 * not edit. A change of the mode allows far more than was asked, so it is used only if Claude offers no rule.
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
