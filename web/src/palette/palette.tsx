import { Autocomplete } from '@base-ui/react/autocomplete';
import { Dialog } from '@base-ui/react/dialog';
import { Search as SearchIcon } from 'lucide-react';
import { type RefObject, useMemo, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { useList } from '../data/list.ts';
import { useSearch } from '../search/search.ts';
import { useAllActions } from '../shell/actions.ts';
import { afterDialog } from '../ui/focus.ts';
import { Keys } from '../ui/keys.tsx';
import { CliLine } from '../ui/notes.tsx';
import { type Entry, type EntryGroup, entriesOf } from './entries.ts';

/** Finds actions, conversations and turns by typing. */
export function Palette({ onClose }: { onClose(): void }) {
  const field = useRef<HTMLInputElement>(null);
  return (
    <Dialog.Root open onOpenChange={(next) => !next && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 z-40 bg-shade" />
        <Dialog.Popup
          finalFocus={afterDialog}
          aria-label="Palette"
          initialFocus={field}
          className="fixed top-[10vh] left-1/2 z-40 flex max-h-[76vh] w-[min(40rem,calc(100vw-1.5rem))] -translate-x-1/2 flex-col overflow-hidden rounded-lg border border-line bg-raised shadow-2xl outline-none"
        >
          <Choices field={field} onChosen={onClose} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

interface ChoicesProps {
  readonly field: RefObject<HTMLInputElement | null>;
  onChosen(): void;
}

function Choices({ field, onChosen }: ChoicesProps) {
  const [, go] = useLocation();
  const offered = useAllActions();
  const known = useList((list) => list.known);
  const { words, setWords, found } = useSearch();
  const groups = useMemo(() => {
    const actions = offered.filter(({ id }) => id !== 'palette');
    const rows = [...known.values()].sort((a, b) => b.updatedAt - a.updatedAt);
    return entriesOf({ words, actions, rows, hits: found?.hits ?? [], go });
  }, [words, offered, known, found, go]);
  const [highlighted, setHighlighted] = useState<Entry | null>(null);
  return (
    <Autocomplete.Root
      open
      inline
      items={groups}
      filter={null}
      value={words}
      onValueChange={(value, { reason }) => reason !== 'item-press' && setWords(value)}
      itemToStringValue={({ title }: Entry) => title}
      onItemHighlighted={(entry) => setHighlighted(entry ?? null)}
      autoHighlight="always"
      keepHighlight
    >
      <div className="flex items-center gap-2 border-b border-line pl-4">
        <SearchIcon size={16} aria-hidden className="shrink-0 text-faint" />
        <Autocomplete.Input
          ref={field}
          aria-label="Search actions and conversations"
          placeholder="Search actions and conversations"
          className="h-12 w-full bg-transparent pr-4 text-ui outline-none placeholder:text-faint"
        />
        <Dialog.Close className="sr-only">Close</Dialog.Close>
      </div>
      <Autocomplete.Empty>
        {groups.length === 0 && <p className="px-4 py-6 text-ui text-muted">No matches.</p>}
      </Autocomplete.Empty>
      <Autocomplete.List className="min-h-0 flex-1 scroll-py-2 overflow-y-auto p-2">
        {(group: EntryGroup) => (
          <Autocomplete.Group key={group.value} items={[...group.items]}>
            <Autocomplete.GroupLabel className="px-2 pt-2 pb-1 text-facts font-medium text-faint">
              {group.value}
            </Autocomplete.GroupLabel>
            <Autocomplete.Collection>
              {(entry: Entry) => <EntryLine key={entry.id} entry={entry} onChosen={onChosen} />}
            </Autocomplete.Collection>
          </Autocomplete.Group>
        )}
      </Autocomplete.List>
      <div className="min-h-11 shrink-0 border-t border-line px-3 py-2" aria-live="polite">
        {highlighted?.cli ? (
          <CliLine line={highlighted.cli} />
        ) : (
          <p className="py-1 text-facts text-muted">Enter runs the entry. If it has a command, it is shown here.</p>
        )}
      </div>
    </Autocomplete.Root>
  );
}

function EntryLine({ entry, onChosen }: { entry: Entry; onChosen(): void }) {
  const choose = () => {
    onChosen();
    // The palette first gives the focus back: the action may set it.
    requestAnimationFrame(() => entry.run());
  };
  return (
    <Autocomplete.Item
      value={entry}
      onClick={choose}
      className="flex min-h-8.5 cursor-pointer items-center gap-3 rounded-md px-2 text-ui outline-none select-none data-highlighted:bg-hover pointer-coarse:min-h-11"
    >
      <span className="min-w-0 flex-1 truncate">{entry.title}</span>
      {entry.about !== null && <span className="max-w-48 truncate text-facts text-muted">{entry.about}</span>}
      {entry.keys !== null && (
        <span className="flex shrink-0 pointer-coarse:hidden">
          <Keys keys={entry.keys} />
        </span>
      )}
    </Autocomplete.Item>
  );
}
