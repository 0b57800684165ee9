import { Hand } from 'lucide-react';
import { type Announced, modesOf } from '../../data/conversation/announced.ts';
import { changeChoice, type NextTurn } from '../../data/drafts/choices.ts';
import { useMay } from '../../data/session.ts';
import { NamedField } from './fields.tsx';
import { modeWords } from './mode-words.ts';
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
 * Nothing is shown for an agent that is not known to have modes.
 */
export function ModePicker({ next, agent, announced, mode, onNext, onOpen }: ModePickerProps) {
  const mayApprove = useMay('approve');
  const { values, current } = modesOf(announced);
  const used = next.mode ?? (next.agent === undefined ? (mode ?? current) : null);
  const isKnown = values.length > 0 || used !== null;
  if (!isKnown || (!mayApprove && next.mode === undefined)) return null;
  const label = (
    <>
      <Hand size={14} className="shrink-0" aria-hidden />
      <span className="truncate">
        {used === null ? 'As the agent does' : modeWords(next.agent ?? agent, used, values)}
      </span>
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
