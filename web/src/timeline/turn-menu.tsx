import { Menu } from '@base-ui/react/menu';
import { Copy, Ellipsis, GitFork, Link2, type LucideIcon, RotateCcw, ScrollText } from 'lucide-react';
import { memo, useEffect, useState } from 'react';
import type { RecordPart, Turn } from 'throughline/client';
import { useLocation } from 'wouter';
import { create } from 'zustand';
import { promptText } from '../../../src/core/turn/content.ts';
import { replyText } from '../../../src/core/turn/record.ts';
import { hasEnded } from '../../../src/core/turn/turn.ts';
import type { TurnItem } from '../data/conversation/model.ts';
import { useConversationStore, useTurn } from '../data/conversation/use-conversation.ts';
import { useVerbs } from '../data/conversation/verbs.ts';
import { useMay } from '../data/session.ts';
import { ToldText } from '../seams/told-text.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { copyText } from '../ui/notes.tsx';
import { say, sayError } from '../ui/say.ts';

const ITEM =
  'flex cursor-default items-center gap-2 rounded-sm px-2 py-1.5 text-ui outline-none data-highlighted:bg-hover data-disabled:opacity-45 pointer-coarse:min-h-11';

/** The turn whose menu is open, and its button. */
const useOpened = create<{ readonly n: number; readonly button: HTMLElement } | null>(() => null);

/** Opens the menu that all turns share. There are many rows, so each has only a button. */
export function TurnMenuButton({ n }: { n: number }) {
  const isOpen = useOpened((opened) => opened?.n === n);
  return (
    <button
      type="button"
      aria-haspopup="menu"
      aria-expanded={isOpen}
      aria-label={`Actions for turn ${n}`}
      onClick={({ currentTarget: button }) => useOpened.setState(isOpen ? null : { n, button }, true)}
      className="grid size-6 place-items-center rounded-sm text-faint hover:bg-hover hover:text-ink aria-expanded:bg-hover pointer-coarse:size-11"
    >
      <Ellipsis size={15} aria-hidden />
    </button>
  );
}

/** The menu of every `TurnMenuButton`. Memoized: a stream does not render it. */
export const TurnMenu = memo(function TurnMenu() {
  const opened = useOpened();
  const [told, setTold] = useState<number | null>(null);
  useEffect(() => () => useOpened.setState(null, true), []);
  return (
    <>
      {opened !== null && (
        <Menu.Root open modal={false} onOpenChange={(isOpen) => !isOpen && useOpened.setState(null, true)}>
          <Menu.Portal>
            <Menu.Positioner anchor={opened.button} align="end" sideOffset={4} className="z-50">
              <Menu.Popup
                finalFocus={() => opened.button}
                className="min-w-52 rounded-lg border border-line bg-raised p-1 shadow-lg outline-none"
              >
                <Items n={opened.n} onTold={() => setTold(opened.n)} />
              </Menu.Popup>
            </Menu.Positioner>
          </Menu.Portal>
        </Menu.Root>
      )}
      {told !== null && <Told n={told} onClose={() => setTold(null)} />}
    </>
  );
});

function Items({ n, onTold }: { n: number; onTold(): void }) {
  const item = useTurn(n);
  return item && <ItemsOf item={item} onTold={onTold} />;
}

function ItemsOf({ item: { turn, parts }, onTold }: { item: TurnItem; onTold(): void }) {
  const act = useTurnActions(turn, parts);
  const mayPrompt = useMay('prompt');
  const item = (label: string, Icon: LucideIcon, run: () => void, disabled = false) => (
    <Menu.Item className={ITEM} onClick={run} disabled={disabled}>
      <Icon size={14} className="text-muted" aria-hidden />
      {label}
    </Menu.Item>
  );
  return (
    <>
      {item('Copy link', Link2, act.copyLink)}
      {item('Copy answer', Copy, act.copyAnswer)}
      {item('Copy prompt', Copy, act.copyPrompt)}
      {mayPrompt && item('Send again', RotateCcw, act.retry, !hasEnded(turn.state))}
      {mayPrompt && item('Fork before this turn', GitFork, act.forkBefore)}
      {item('What the session was told', ScrollText, onTold, turn.sent === null)}
    </>
  );
}

function Told({ n, onClose }: { n: number; onClose(): void }) {
  const turn = useTurn(n)?.turn;
  return (
    <Dialog
      open
      onClose={onClose}
      title={`What the session was told for turn ${n}`}
      className="w-[min(56rem,calc(100vw-2rem))]"
    >
      <div className="p-4">{turn && <ToldText turnId={turn.id} attempt={turn.sent?.attempt ?? turn.attempt} />}</div>
    </Dialog>
  );
}

function useTurnActions(turn: Turn, parts: readonly RecordPart[]) {
  const verbs = useVerbs();
  const { id } = useConversationStore();
  const [, go] = useLocation();
  const copy = (text: () => string, what: string) => () => void copyText(text(), () => say(`${what} copied.`));
  const attempt = (work: () => Promise<void>) => () => void work().catch(sayError);
  return {
    copyLink: copy(() => `${location.origin}/c/${id}/turn/${turn.n}`, 'Link'),
    copyAnswer: copy(() => replyText(parts), 'Answer'),
    copyPrompt: copy(() => promptText(turn.prompt), 'Prompt'),
    retry: attempt(() => verbs.retry(turn.id)),
    /** Opens a new conversation with all turns before this one, and the prompt with its files in the composer. */
    forkBefore: attempt(async () => go(`~${await verbs.goBack(turn)}`)),
  };
}
