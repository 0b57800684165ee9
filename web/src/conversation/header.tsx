import { Menu } from '@base-ui/react/menu';
import { EllipsisVertical, PanelRight, Pencil, Skull } from 'lucide-react';
import { useState } from 'react';
import { useOpenTurns } from '../composer/turns.ts';
import { useConversation } from '../data/conversation/use-conversation.ts';
import { useMay } from '../data/session.ts';
import { usePanel } from '../panel/panel.tsx';
import { type Action, useActions } from '../shell/actions.ts';
import { Button, IconButton } from '../ui/button.tsx';
import { nameOf, StateMark } from '../ui/state.tsx';
import { type Shown, useConversationActions } from './conversation-actions.ts';
import { EraseDialog, TitleField, VerifyDialog } from './dialogs.tsx';
import { stateNow } from './standing.ts';
import { MoveDialog, StrandedNote } from './stranded.tsx';

/** The title, the agent, the state and the actions of the conversation. */
export function Header() {
  const [shown, show] = useState<Shown | null>(null);
  const actions = useConversationActions(show);
  useActions(actions);
  const kill = actions.find(({ id }) => id === 'conversation.kill');
  const move = actions.find(({ id }) => id === 'conversation.move');
  return (
    <>
      <header className="flex h-12 shrink-0 items-center gap-2 border-b border-line pr-2 pl-4">
        {shown === 'title' ? <TitleField onDone={() => show(null)} /> : <Title onRename={() => show('title')} />}
        <Standing />
        {kill !== undefined && (
          <Button
            small
            onClick={kill.run}
            title="Ends the agent's process. Nothing that was said is lost."
            className="max-sm:hidden"
          >
            <Skull size={14} aria-hidden />
            Kill session
          </Button>
        )}
        <ActionMenu actions={actions} />
        <PanelButton />
        {shown === 'verify' && <VerifyDialog onClose={() => show(null)} />}
        {shown === 'erase' && <EraseDialog onClose={() => show(null)} />}
        {shown === 'move' && <MoveDialog onClose={() => show(null)} />}
      </header>
      <StrandedNote move={move ?? null} />
    </>
  );
}

function Title({ onRename }: { onRename(): void }) {
  const conversation = useConversation((state) => state.conversation);
  const may = useMay('prompt');
  const name = conversation === null ? 'Untitled' : nameOf(conversation);
  return (
    <div className="group flex min-w-0 flex-1 items-center gap-1">
      <h1 className="min-w-0 truncate text-ui font-semibold" title={name} onDoubleClick={() => may && onRename()}>
        {name}
      </h1>
      {may && (
        <IconButton
          label="Rename"
          small
          onClick={onRename}
          className="opacity-0 group-hover:opacity-100 focus-visible:opacity-100 max-sm:hidden"
        >
          <Pencil size={13} />
        </IconButton>
      )}
    </div>
  );
}

function Standing() {
  const conversation = useConversation((state) => state.conversation);
  const asks = useConversation(({ permissions }) => permissions.length > 0);
  const last = useConversation(({ turns, last }) => turns.get(last)?.turn ?? null);
  const { running, queued } = useOpenTurns();
  if (conversation === null) return null;
  const agent = last?.agent ?? conversation.lastAgent ?? conversation.agent;
  const state = stateNow(conversation.state, { asks, isRunning: running !== null, isQueued: queued.length > 0 });
  return (
    <p className="flex shrink-0 items-center gap-2 text-ui text-muted">
      {agent !== null && <span className="max-w-28 truncate max-lg:hidden">{agent}</span>}
      <StateMark state={state} stranded={conversation.stranded} />
    </p>
  );
}

function ActionMenu({ actions }: { actions: readonly Action[] }) {
  return (
    <Menu.Root>
      <Menu.Trigger render={<IconButton label="Conversation actions">{<EllipsisVertical size={16} />}</IconButton>} />
      <Menu.Portal>
        <Menu.Positioner align="end" sideOffset={4} className="z-40">
          <Menu.Popup className="min-w-56 rounded-lg border border-line bg-raised p-1 text-ui shadow-xl outline-none">
            {actions.map(({ id, title, run }) => (
              <Menu.Item
                key={id}
                onClick={run}
                className="flex min-h-8 cursor-default items-center rounded-md px-2 outline-none data-highlighted:bg-hover pointer-coarse:min-h-11"
              >
                {title}
              </Menu.Item>
            ))}
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}

function PanelButton() {
  const [shown, show] = usePanel();
  return (
    <IconButton
      label={shown === null ? 'Show the panel' : 'Hide the panel'}
      aria-expanded={shown !== null}
      onClick={() => show(shown === null ? 'turns' : null)}
    >
      <PanelRight size={16} />
    </IconButton>
  );
}
