import { clsx } from 'clsx';
import { ChevronDown, ChevronRight, Circle, CircleCheck, CircleDot } from 'lucide-react';
import type { PlanEntry } from '../data/conversation/announced.ts';
import { useConversation } from '../data/conversation/use-conversation.ts';
import { usePreference } from '../data/preferences.ts';

const MARKS = {
  pending: { Icon: Circle, word: 'to do', tone: 'text-faint' },
  in_progress: { Icon: CircleDot, word: 'in progress', tone: 'text-accent' },
  completed: { Icon: CircleCheck, word: 'done', tone: 'text-accent' },
} as const;

/** The latest plan that the agent has announced. */
export function Plan() {
  const plan = useConversation(({ announced }) => announced.plan);
  const [folded, setFolded] = usePreference('plan.folded');
  if (plan === null || plan.length === 0) return null;
  const isFolded = folded === 'yes';
  const done = plan.filter(({ status }) => status === 'completed').length;
  const now = plan.find(({ status }) => status === 'in_progress') ?? plan.find(({ status }) => status === 'pending');
  const Fold = isFolded ? ChevronRight : ChevronDown;
  return (
    <section aria-label="Plan" className="mb-2 text-ui">
      <button
        type="button"
        aria-expanded={!isFolded}
        onClick={() => setFolded(isFolded ? null : 'yes')}
        className="flex w-full items-center gap-1 rounded-sm text-left text-muted hover:text-ink pointer-coarse:min-h-11"
      >
        <Fold size={14} className="shrink-0" aria-hidden />
        <span className="shrink-0 tabular-nums">
          Plan {done}/{plan.length}
        </span>
        {isFolded && now !== undefined && <span className="min-w-0 truncate">· {now.content}</span>}
      </button>
      {!isFolded && (
        <ul className="mt-1 max-h-40 space-y-0.5 overflow-y-auto pl-1">
          {plan.map((entry, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: entries have no id, and the list is replaced as a whole
            <Entry key={index} entry={entry} />
          ))}
        </ul>
      )}
    </section>
  );
}

function Entry({ entry: { content, status } }: { entry: PlanEntry }) {
  const { Icon, word, tone } = MARKS[status];
  return (
    <li className="flex items-start gap-2">
      <Icon size={14} className={clsx('mt-0.5 shrink-0', tone)} aria-label={word} />
      <span className={clsx('min-w-0 break-words', status === 'completed' && 'text-muted')}>{content}</span>
    </li>
  );
}
