import { ChevronDown, ChevronRight } from 'lucide-react';
import { useRef, useState, useSyncExternalStore } from 'react';
import type { Turn } from 'throughline/client';
import { promptText } from '../../../../src/core/turn/content.ts';
import { useConversation } from '../../data/conversation/use-conversation.ts';
import { withWords } from '../../data/drafts/prompt.ts';
import { useMay } from '../../data/session.ts';
import { useQueueChanges } from './changes.ts';
import { queueOf } from './order.ts';
import { labelOf, QueuedTurn, When } from './queued-turn.tsx';

/**
 * The prompts that wait, in the order in which they will run. They are shown here and nowhere else, and take only so much room that the
 * running answer stays in view. They can be edited, moved and removed, except with read-only access.
 */
export function Queue({ turns }: { turns: readonly Turn[] }) {
  const isLow = useIsLow();
  const [isOpened, setOpened] = useState(false);
  const delayed = useConversation(({ conversation }) => conversation?.delayed ?? conversation?.stranded ?? null);
  if (turns.length === 0) return null;
  const words = turns.length === 1 ? '1 prompt waits' : `${turns.length} prompts wait`;
  const isFolded = isLow && !isOpened;
  const Fold = isFolded ? ChevronRight : ChevronDown;
  return (
    <section aria-label="Queued prompts" className="border-b border-line p-1 text-ui">
      <h3 className={isLow || delayed !== null ? 'px-2.5 text-facts text-muted' : 'sr-only'}>
        {isLow ? (
          <button
            type="button"
            aria-expanded={!isFolded}
            onClick={() => setOpened(isFolded)}
            className="flex min-h-7 items-center gap-1 pointer-coarse:min-h-11"
          >
            <Fold size={13} aria-hidden />
            {words}
          </button>
        ) : (
          words
        )}
        {delayed !== null && <span className="text-look">: {delayed.message}</span>}
      </h3>
      {!isFolded && <Rows turns={turns} />}
    </section>
  );
}

/** A large zoom, or a phone on its side: what can be folded is folded. */
function useIsLow(): boolean {
  return useSyncExternalStore(onHeight, () => matchMedia(LOW).matches);
}

const LOW = '(max-height: 420px)';

function onHeight(listener: () => void): () => void {
  const media = matchMedia(LOW);
  media.addEventListener('change', listener);
  return () => media.removeEventListener('change', listener);
}

function Rows({ turns }: { turns: readonly Turn[] }) {
  const may = useMay('prompt');
  const list = useRef<HTMLOListElement>(null);
  const [dragged, setDragged] = useState<string | null>(null);
  const ids = turns.map(({ id }) => id);
  const { isBusy, change, move } = useQueueChanges(list, ids);
  return (
    <ol ref={list} className="max-h-[min(9.5rem,25dvh)] overflow-y-auto">
      {turns.map((turn, place) =>
        may ? (
          <QueuedTurn
            key={turn.id}
            turn={turn}
            place={place}
            isLast={place === turns.length - 1}
            isBusy={isBusy}
            onMove={(to) => move(place, to)}
            onDrag={() => setDragged(turn.id)}
            onDropHere={() => dragged !== null && move(ids.indexOf(dragged), place)}
            onEdit={(text) =>
              change(queueOf(ids, { [turn.id]: { prompt: withWords(turn.prompt, text) } }), { place, control: 'edit' })
            }
            onRemove={() => void change(queueOf(ids, { [turn.id]: { drop: true } }), { place, control: 'remove' })}
          />
        ) : (
          <ReadTurn key={turn.id} turn={turn} place={place} />
        ),
      )}
    </ol>
  );
}

/** A queued prompt with read-only access. */
function ReadTurn({ turn, place }: { turn: Turn; place: number }) {
  const words = promptText(turn.prompt);
  return (
    <li aria-label={labelOf(words, place)} className="flex min-h-7.5 items-center gap-2 px-2.5 pointer-coarse:min-h-11">
      <When place={place} />
      <span className="min-w-0 flex-1 truncate">{words}</span>
    </li>
  );
}
