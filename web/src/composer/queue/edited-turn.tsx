import { useState } from 'react';
import type { Turn } from 'throughline/client';
import { wordsIn } from '../../data/drafts/prompt.ts';
import { Button } from '../../ui/button.tsx';

interface EditedTurnProps {
  readonly turn: Turn;
  onEdit(text: string): Promise<unknown>;
  onDone(): void;
}

/** A queued prompt while it is edited. It stays in the queue: if it begins meanwhile, saving the edit is refused. */
export function EditedTurn({ turn, onEdit, onDone }: EditedTurnProps) {
  const [text, setText] = useState(() => wordsIn(turn.prompt));
  const done = () => {
    onDone();
    // The row with its buttons is rendered in the place of this one.
    requestAnimationFrame(() => {
      if (document.activeElement !== document.body) return;
      document.querySelector<HTMLElement>(`[data-queued="${turn.id}"] [data-control=edit]`)?.focus();
    });
  };
  const save = async () => {
    if (text.trim() === '' && turn.prompt.every(({ type }) => type === 'text')) return;
    if (text !== wordsIn(turn.prompt)) await onEdit(text);
    done();
  };
  return (
    <li data-queued={turn.id} className="m-1 rounded-md border border-ink bg-raised p-2">
      <textarea
        aria-label={`Edit the queued prompt of turn ${turn.n}`}
        className="max-h-40 w-full resize-none bg-transparent outline-none field-sizing-content"
        value={text}
        ref={focusAtEnd}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing || event.keyCode === 229) return;
          if (event.key === 'Escape') done();
          else if (event.key === 'Enter' && !event.shiftKey && !event.repeat) void save();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <div className="flex justify-end gap-2">
        <Button small look="quiet" onClick={done}>
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
