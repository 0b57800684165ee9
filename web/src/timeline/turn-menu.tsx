import { Menu } from '@base-ui/react/menu';
import { Copy, Ellipsis, GitFork, Link2, type LucideIcon, RotateCcw, ScrollText } from 'lucide-react';
import { memo, useState } from 'react';
import type { RecordPart, Turn } from 'throughline/client';
import { useLocation } from 'wouter';
import { promptText } from '../../../src/core/turn/content.ts';
import { replyText } from '../../../src/core/turn/record.ts';
import { hasEnded } from '../../../src/core/turn/turn.ts';
import type { TurnItem } from '../data/conversation/model.ts';
import { useConversationStore, useTurn } from '../data/conversation/use-conversation.ts';
import { useVerbs } from '../data/conversation/verbs.ts';
import { useMay } from '../data/session.ts';
import { ToldText } from '../seams/told-text.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { say, sayError } from '../ui/say.ts';

const ITEM =
  'flex cursor-default items-center gap-2 rounded px-2 py-1.5 text-sm outline-none data-highlighted:bg-hover data-disabled:opacity-45 pointer-coarse:min-h-11';

/** One menu for all turns, by their numbers: each row has only a button. Rows are made in great numbers, and a menu is costly. */
const menu = Menu.createHandle<number>();

/** Nothing of it depends on what the turn says, so a stream does not render it. */
export const TurnMenuButton = memo(function TurnMenuButton({ n }: { n: number }) {
  return (
    <Menu.Trigger
      handle={menu}
      payload={n}
      aria-label={`Actions for turn ${n}`}
      className="grid size-6 place-items-center rounded text-faint hover:bg-hover hover:text-ink pointer-coarse:size-11"
    >
      <Ellipsis size={15} aria-hidden />
    </Menu.Trigger>
  );
});

/** What can be done with one turn: the menu of every `TurnMenuButton`. */
export function TurnMenu() {
  const [told, setTold] = useState<number | null>(null);
  return (
    <>
      <Menu.Root handle={menu} modal={false}>
        {({ payload: n }) => (
          <Menu.Portal>
            <Menu.Positioner align="end" sideOffset={4} className="z-50">
              <Menu.Popup className="min-w-52 rounded-lg border border-line bg-raised p-1 shadow-lg outline-none">
                {n !== undefined && <Items n={n} onTold={() => setTold(n)} />}
              </Menu.Popup>
            </Menu.Positioner>
          </Menu.Portal>
        )}
      </Menu.Root>
      <Told n={told} onClose={() => setTold(null)} />
    </>
  );
}

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
      {mayPrompt && item('Fork before it', GitFork, act.forkBefore)}
      {item('What the session was told', ScrollText, onTold, turn.sent === null)}
    </>
  );
}

/** `n`: null while it is not shown. */
function Told({ n, onClose }: { n: number | null; onClose(): void }) {
  const turn = useTurn(n ?? 0)?.turn;
  return (
    <Dialog
      open={n !== null}
      onClose={onClose}
      title={`What the session was told for turn ${n ?? ''}`}
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
  const copy = (text: () => string, what: string) => () =>
    void navigator.clipboard.writeText(text()).then(() => say(`${what} copied.`), sayError);
  const attempt = (work: () => Promise<void>) => () => void work().catch(sayError);
  return {
    copyLink: copy(() => `${location.origin}/c/${id}/turn/${turn.n}`, 'Link'),
    copyAnswer: copy(() => replyText(parts), 'Answer'),
    copyPrompt: copy(() => promptText(turn.prompt), 'Prompt'),
    retry: attempt(() => verbs.retry(turn.id)),
    /** A new conversation with everything before, and the prompt with its files to write anew. */
    forkBefore: attempt(async () => go(`~${await verbs.goBack(turn)}`)),
  };
}
