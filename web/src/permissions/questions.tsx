import { useEffect, useState } from 'react';
import type { Permission, Turn } from 'throughline/client';
import { isObject } from '../../../src/core/turn/content.ts';
import { useConversation, useConversationStore, useDecisions } from '../data/conversation/use-conversation.ts';
import { SafeText } from '../ui/safe-text.tsx';
import { DecisionLine, PermissionCard } from './card.tsx';
import { useChangedAt } from './cards.tsx';
import { Noticed } from './hint.tsx';

/** The decisions about a tool of a turn, to be shown below it. */
export function ToolDecisions({ turn, tools }: { turn: Turn; tools: readonly string[] }) {
  const ended = useDecisions(turn).filter((permission) => tools.includes(toolOf(permission) ?? ''));
  return ended.map((permission) => <DecisionLine key={permission.id} permission={permission} />);
}

interface QuestionsProps {
  readonly turn: Turn;
  /** The tools of the turn that show the decisions about them. */
  readonly tools: readonly string[];
}

/** At the end of a turn: its decisions that belong to no tool, and the open questions. */
export function Questions({ turn, tools }: QuestionsProps) {
  const { decisions } = useConversationStore();
  const all = useConversation(({ permissions }) => permissions);
  const ended = useDecisions(turn);
  const [late, setLate] = useState<ReadonlySet<string>>(new Set());
  const open = all.filter(({ id, turnId }) => turnId === turn.id && !ended.some((one) => one.id === id));
  const movedAt = useChangedAt([...open.map(({ id }) => id), tools.length].join());
  const [first] = open;
  useFocusOnRefuse(first?.id ?? null);
  const here = ended.filter((one) => late.has(one.id) || !tools.includes(toolOf(one) ?? ''));
  if (open.length + here.length === 0) return null;
  return (
    <section aria-label="Questions" className="space-y-2.5">
      {here.length > 0 && (
        <div>
          {here.map((permission) => (
            <DecisionLine key={permission.id} permission={permission} isLate={late.has(permission.id)} />
          ))}
        </div>
      )}
      {open.map((permission, index) => (
        <Noticed key={permission.id} id={permission.id}>
          <PermissionCard
            permission={permission}
            agent={turn.agent}
            where={<Where />}
            place={open.length === 1 ? null : `${index + 1} of ${open.length}`}
            movedAt={movedAt}
            onAnswered={(answered, isLate) => {
              if (isLate) setLate((before) => new Set([...before, answered.id]));
              decisions.put([answered]);
            }}
          />
        </Noticed>
      ))}
    </section>
  );
}

/** The directory and the worktree. Whether there is a sandbox is not known to this page. */
function Where() {
  const cwd = useConversation(({ conversation }) => conversation?.cwd ?? null);
  const isWorktree = useConversation(({ conversation }) => conversation?.worktree ?? false);
  const name = cwd?.split('/').findLast((part) => part !== '');
  return (
    <span>
      in{' '}
      {name === undefined ? (
        'a directory of its own'
      ) : (
        <span className="font-mono text-ink" title={cwd ?? ''}>
          <SafeText text={name} as="code" />
        </span>
      )}
      {isWorktree && ' · own worktree'}
    </span>
  );
}

/** The agent's id of the tool that a question is about; null: it names none. */
function toolOf({ toolCall }: Permission): string | null {
  return isObject(toolCall) && typeof toolCall.toolCallId === 'string' ? toolCall.toolCallId : null;
}

/** Questions that have had the focus: scrolling back to one must not take it again. */
const hadFocus = new Set<string>();

/** A new question takes the focus, on Refuse, unless somebody is busy elsewhere. */
function useFocusOnRefuse(id: string | null): void {
  useEffect(() => {
    if (id === null || hadFocus.has(id) || !isFree(document.activeElement)) return;
    const button = document.querySelector<HTMLElement>(`[data-question="${CSS.escape(id)}"] [data-refuse]`);
    if (button === null) return;
    hadFocus.add(id);
    button.focus({ preventScroll: true });
  }, [id]);
}

/** Nothing has the focus, or an empty prompt field. */
function isFree(element: Element | null): boolean {
  if (element === null || element === document.body) return true;
  return element instanceof HTMLTextAreaElement && element.id === 'composer' && element.value === '';
}
