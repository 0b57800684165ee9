import { Menu } from '@base-ui/react/menu';
import { clsx } from 'clsx';
import { ArrowDown, ArrowUp, Ellipsis, ListEnd, Pencil, X } from 'lucide-react';
import { type KeyboardEvent, useState } from 'react';
import type { Turn } from 'throughline/client';
import { promptText } from '../../../../src/core/turn/content.ts';
import { IconButton } from '../../ui/button.tsx';
import type { QueueControl } from './changes.ts';
import { EditedTurn } from './edited-turn.tsx';

export const labelOf = (words: string, place: number) => `Queued prompt ${place + 1}: ${words.slice(0, 80)}`;

export interface QueuedTurnProps {
  readonly turn: Turn;
  readonly place: number;
  readonly isLast: boolean;
  /** A change is on its way. Until it is answered, nothing else is changed. */
  readonly isBusy: boolean;
  onMove(to: number): void;
  onDrag(): void;
  onDropHere(): void;
  onEdit(text: string): Promise<unknown>;
  onRemove(): void;
}

export function QueuedTurn(props: QueuedTurnProps) {
  const { turn, place, isBusy, onMove, onDrag, onDropHere } = props;
  const [isEdited, setEdited] = useState(false);
  const [isOver, setOver] = useState(false);
  const words = promptText(turn.prompt);
  if (isEdited) return <EditedTurn turn={turn} onEdit={props.onEdit} onDone={() => setEdited(false)} />;
  const onKey = (event: KeyboardEvent) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!event.altKey || by === undefined) return;
    event.preventDefault();
    if (!event.repeat) onMove(place + by);
  };
  return (
    <li
      data-queued={turn.id}
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
        'group/row flex min-h-7.5 items-center gap-2 rounded-md pr-1 pl-2.5 hover:bg-hover pointer-coarse:min-h-11',
        isOver && 'outline-2 -outline-offset-2 outline-ink',
        isBusy && 'opacity-60',
      )}
    >
      <When place={place} />
      <span className="min-w-0 flex-1 truncate">{words}</span>
      <TurnButtons {...props} onEditing={() => setEdited(true)} />
      <TurnMenu {...props} onEditing={() => setEdited(true)} />
    </li>
  );
}

export function When({ place }: { place: number }) {
  return (
    <span aria-hidden className="flex min-w-15.5 shrink-0 cursor-grab items-center gap-1.5 text-facts text-muted">
      <ListEnd size={13} className="shrink-0" />
      {place === 0 ? 'Next' : 'Then'}
    </span>
  );
}

type Controls = QueuedTurnProps & { onEditing(): void };

/** What can be done with the prompt. A control does not lose the focus while a change is on its way, so it is not disabled then. */
function controlsOf({ place, isLast, onMove, onRemove, onEditing }: Controls) {
  const all = [
    { control: 'up', label: 'Move up', Icon: ArrowUp, keys: 'Alt+ArrowUp', run: () => onMove(place - 1) },
    { control: 'down', label: 'Move down', Icon: ArrowDown, keys: 'Alt+ArrowDown', run: () => onMove(place + 1) },
    { control: 'edit', label: 'Edit', Icon: Pencil, keys: undefined, run: onEditing },
    { control: 'remove', label: 'Remove', Icon: X, keys: undefined, run: onRemove },
  ] as const;
  const isOnly = place === 0 && isLast;
  const canRun = { up: place > 0, down: !isLast, edit: true, remove: true };
  const isMove = (control: QueueControl) => control === 'up' || control === 'down';
  return all.flatMap((one) => (isOnly && isMove(one.control) ? [] : [{ ...one, isOff: !canRun[one.control] }]));
}

function TurnButtons(props: Controls) {
  return (
    <span className="flex shrink-0 max-md:hidden">
      {controlsOf(props).map(({ control, label, Icon, keys, isOff, run }) => (
        <IconButton
          key={control}
          data-control={control}
          label={label}
          {...(keys !== undefined && { keys })}
          small
          disabled={isOff}
          aria-disabled={props.isBusy || undefined}
          onClick={() => !props.isBusy && run()}
          className={clsx(
            keys !== undefined &&
              'opacity-0 disabled:opacity-0 group-focus-within/row:opacity-100 group-hover/row:opacity-100 group-focus-within/row:disabled:opacity-45 group-hover/row:disabled:opacity-45 pointer-coarse:opacity-100',
          )}
        >
          <Icon size={14} />
        </IconButton>
      ))}
    </span>
  );
}

/** The same on a phone, where there is no room for buttons. */
function TurnMenu(props: Controls) {
  return (
    <Menu.Root>
      <Menu.Trigger
        render={
          <IconButton label="Change this prompt" small className="md:hidden">
            <Ellipsis size={16} />
          </IconButton>
        }
      />
      <Menu.Portal>
        <Menu.Positioner align="end" side="top" sideOffset={4} className="z-40">
          <Menu.Popup className="min-w-44 rounded-lg border border-line-strong bg-raised p-1 text-ui shadow-xl outline-none">
            {controlsOf(props).map(({ control, label, Icon, isOff, run }) => (
              <Menu.Item
                key={control}
                disabled={isOff || props.isBusy}
                onClick={run}
                className="flex min-h-8 cursor-default items-center gap-2 rounded-md px-2 outline-none data-disabled:opacity-45 data-highlighted:bg-hover pointer-coarse:min-h-11"
              >
                <Icon size={14} aria-hidden />
                {label}
              </Menu.Item>
            ))}
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}
