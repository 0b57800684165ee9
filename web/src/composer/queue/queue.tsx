import { clsx } from 'clsx';
import { ArrowDown, ArrowUp, GripVertical, Pencil, X } from 'lucide-react';
import { type KeyboardEvent, useState } from 'react';
import type { QueueTurn, Turn } from 'throughline/client';
import { promptText } from '../../../../src/core/turn/content.ts';
import { useConversation } from '../../data/conversation/use-conversation.ts';
import { useVerbs } from '../../data/conversation/verbs.ts';
import { withWords, wordsIn } from '../../data/drafts/prompt.ts';
import { useMay } from '../../data/session.ts';
import { Button, IconButton } from '../../ui/button.tsx';
import { sayError } from '../../ui/say.ts';
import { moved, queueOf } from './order.ts';

/** The queued prompts, in the order in which they will run. They can be edited, moved and cancelled, except with read-only access. */
export function Queue({ turns }: { turns: readonly Turn[] }) {
  const { requeue } = useVerbs();
  const may = useMay('prompt');
  const delayed = useConversation(({ conversation }) => conversation?.delayed ?? conversation?.stranded ?? null);
  const [dragged, setDragged] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  if (turns.length === 0) return null;
  const ids = turns.map(({ id }) => id);
  const change = async (wanted: readonly QueueTurn[]) => {
    setBusy(true);
    try {
      await requeue(wanted);
    } catch (error) {
      sayError(error);
    } finally {
      setBusy(false);
    }
  };
  const move = (from: number, to: number) => {
    if (from !== to && to >= 0 && to < ids.length) void change(queueOf(moved(ids, from, to)));
  };
  return (
    <section aria-label="Queued prompts" className="mb-2 text-ui">
      <h3 className="mb-1 text-facts text-muted">
        {turns.length === 1 ? '1 queued prompt' : `${turns.length} queued prompts`}
        {delayed !== null && `: ${delayed.message}`}
      </h3>
      <ol className="max-h-48 space-y-1 overflow-y-auto">
        {!may && turns.map((turn, place) => <ReadTurn key={turn.id} turn={turn} place={place} />)}
        {may &&
          turns.map((turn, place) => (
            <QueuedTurn
              key={turn.id}
              turn={turn}
              place={place}
              isLast={place === turns.length - 1}
              isBusy={isBusy}
              onMove={(to) => move(place, to)}
              onDrag={() => setDragged(turn.id)}
              onDropHere={() => dragged !== null && move(ids.indexOf(dragged), place)}
              onEdit={(text) => change(queueOf(ids, { [turn.id]: { prompt: withWords(turn.prompt, text) } }))}
              onCancel={() => void change(queueOf(ids, { [turn.id]: { drop: true } }))}
            />
          ))}
      </ol>
    </section>
  );
}

const labelOf = (words: string, place: number) => `Queued prompt ${place + 1}: ${words.slice(0, 80)}`;

/** A queued prompt with read-only access. */
function ReadTurn({ turn, place }: Pick<QueuedTurnProps, 'turn' | 'place'>) {
  const words = promptText(turn.prompt);
  return (
    <li
      aria-label={labelOf(words, place)}
      className="truncate rounded-md border border-line bg-raised px-2 py-1 pointer-coarse:py-3"
    >
      {words}
    </li>
  );
}

interface QueuedTurnProps {
  readonly turn: Turn;
  readonly place: number;
  readonly isLast: boolean;
  readonly isBusy: boolean;
  onMove(to: number): void;
  onDrag(): void;
  onDropHere(): void;
  onEdit(text: string): Promise<void>;
  onCancel(): void;
}

function QueuedTurn(props: QueuedTurnProps) {
  const { turn, place, isBusy, onMove, onDrag, onDropHere } = props;
  const [isEdited, setEdited] = useState(false);
  const [isOver, setOver] = useState(false);
  const words = promptText(turn.prompt);
  if (isEdited) return <EditedTurn {...props} onDone={() => setEdited(false)} />;
  const onKey = (event: KeyboardEvent) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!event.altKey || by === undefined || event.repeat) return;
    event.preventDefault();
    onMove(place + by);
  };
  return (
    <li
      draggable={!isBusy}
      onDragStart={(event) => {
        event.dataTransfer.effectAllowed = 'move';
        event.dataTransfer.setData('text/plain', words);
        onDrag();
      }}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        onDropHere();
      }}
      onKeyDown={onKey}
      aria-label={labelOf(words, place)}
      className={clsx(
        'group flex items-center gap-1 rounded-md border bg-raised pl-1',
        isOver ? 'border-ink' : 'border-line',
        isBusy && 'opacity-60',
      )}
    >
      <GripVertical size={14} className="shrink-0 cursor-grab text-faint" aria-hidden />
      <span className="min-w-0 flex-1 truncate">{words}</span>
      <TurnButtons {...props} onEditing={() => setEdited(true)} />
    </li>
  );
}

function TurnButtons({ place, isLast, isBusy, onMove, onCancel, onEditing }: QueuedTurnProps & { onEditing(): void }) {
  return (
    <>
      <IconButton
        label="Move up"
        keys="Alt+ArrowUp"
        small
        disabled={isBusy || place === 0}
        onClick={() => onMove(place - 1)}
      >
        <ArrowUp size={14} />
      </IconButton>
      <IconButton
        label="Move down"
        keys="Alt+ArrowDown"
        small
        disabled={isBusy || isLast}
        onClick={() => onMove(place + 1)}
      >
        <ArrowDown size={14} />
      </IconButton>
      <IconButton label="Edit" small disabled={isBusy} onClick={onEditing}>
        <Pencil size={14} />
      </IconButton>
      <IconButton label="Cancel this prompt" small disabled={isBusy} onClick={onCancel}>
        <X size={14} />
      </IconButton>
    </>
  );
}

function EditedTurn({ turn, onEdit, onDone }: QueuedTurnProps & { onDone(): void }) {
  const [text, setText] = useState(() => wordsIn(turn.prompt));
  const save = async () => {
    if (text.trim() === '' && turn.prompt.every(({ type }) => type === 'text')) return;
    if (text !== wordsIn(turn.prompt)) await onEdit(text);
    onDone();
  };
  return (
    <li className="rounded-md border border-ink bg-raised p-2">
      <textarea
        aria-label={`Edit the queued prompt of turn ${turn.n}`}
        className="max-h-40 w-full resize-none bg-transparent outline-none field-sizing-content"
        value={text}
        ref={focusAtEnd}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing || event.keyCode === 229) return;
          if (event.key === 'Escape') onDone();
          else if (event.key === 'Enter' && !event.shiftKey && !event.repeat) void save();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <div className="flex justify-end gap-2">
        <Button small look="quiet" onClick={onDone}>
          Discard the edit
        </Button>
        <Button small onClick={() => void save()}>
          Save
        </Button>
      </div>
    </li>
  );
}

function focusAtEnd(field: HTMLTextAreaElement | null): void {
  if (field === null || document.activeElement === field) return;
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
}
