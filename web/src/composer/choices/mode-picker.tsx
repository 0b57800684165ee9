import { Hand } from 'lucide-react';
import { type Announced, modesOf, type Named } from '../../data/conversation/announced.ts';
import { changeChoice, type NextTurn } from '../../data/drafts/choices.ts';
import { useMay } from '../../data/session.ts';
import { NamedField } from './fields.tsx';
import { ChoicePopup } from './popup.tsx';

interface ModePickerProps {
  readonly next: NextTurn;
  readonly agent: string | null;
  readonly announced: Announced;
  /** The mode that the conversation has chosen for its agent; null: the agent's own. */
  readonly mode: string | null;
  onNext(next: NextTurn): void;
  onOpen?(): void;
}

/**
 * What the agent may do without asking. A mode may allow it to act without asking, so choosing one needs `approve`; removing one does not.
 */
export function ModePicker({ next, agent, announced, mode, onNext, onOpen }: ModePickerProps) {
  const mayApprove = useMay('approve');
  const { values, current } = modesOf(announced);
  const used = next.mode ?? (next.agent === undefined ? (mode ?? current) : null);
  if (!mayApprove && next.mode === undefined) return null;
  const label = (
    <>
      <Hand size={14} className="shrink-0" aria-hidden />
      <span className="truncate">{used === null ? 'Its default' : modeWords(next.agent ?? agent, used, values)}</span>
    </>
  );
  return (
    <ChoicePopup title="Mode" label={label} {...(onOpen && { onOpen })}>
      <NamedField
        label="Mode"
        value={next.mode}
        now={current}
        values={values}
        onValue={(chosen) => onNext(changeChoice(next, { mode: chosen, of: next.agent ?? agent ?? undefined }))}
      />
    </ChoicePopup>
  );
}

/** What the modes of Claude Code allow. */
const CLAUDE: Readonly<Record<string, string>> = {
  default: 'Asks first',
  acceptEdits: 'Edits without asking',
  plan: 'Plans only',
  dontAsk: 'Refuses what is not allowed',
  bypassPermissions: 'Never asks',
};

/** A mode as people read it: what it allows, if that is known of this agent, or the name that the agent gives it. */
function modeWords(agent: string | null, id: string, values: readonly Named[]): string {
  const known = agent === 'claude' || agent === 'claude-code' ? CLAUDE[id] : undefined;
  return known ?? values.find((value) => value.id === id)?.name ?? id;
}
