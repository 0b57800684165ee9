import { Menu } from '@base-ui/react/menu';
import { clsx } from 'clsx';
import { ChevronLeft, Ellipsis, Folder, GitBranch, ListChecks, PanelRight, Pencil } from 'lucide-react';
import { Fragment, type ReactNode, useState } from 'react';
import type { Conversation } from 'throughline/client';
import { Link } from 'wouter';
import { useOpenTurns } from '../composer/turns.ts';
import { useConversation } from '../data/conversation/use-conversation.ts';
import { useList } from '../data/list.ts';
import { readPreference } from '../data/preferences.ts';
import { useMay } from '../data/session.ts';
import { useTasks } from '../data/tasks.ts';
import { usePanel } from '../panel/panel.tsx';
import { projectOf } from '../rail/groups.ts';
import { type Action, useActions } from '../shell/actions.ts';
import { IconButton } from '../ui/button.tsx';
import { LAST_TAB, useIsPhone } from '../ui/screen.ts';
import { branchOf, Glyph, lookOf, nameOf } from '../ui/state.tsx';
import { type Shown, useConversationActions } from './conversation-actions.ts';
import { EraseDialog, TitleField, VerifyDialog } from './dialogs.tsx';
import { stateNow, taskPathOf } from './standing.ts';
import { MoveDialog, StrandedNote } from './stranded.tsx';

/** The title, the place, the agent and the actions of the conversation. */
export function Header() {
  const [shown, show] = useState<Shown | null>(null);
  const [tab, showPanel] = usePanel();
  const isPhone = useIsPhone();
  const actions = useConversationActions(show);
  useActions(actions);
  const move = actions.find(({ id }) => id === 'conversation.move');
  const panel = { id: 'panel', title: 'Show the panel', group: 'Panel', run: () => showPanel('turns') };
  return (
    <>
      <header className="flex min-h-13 shrink-0 items-center gap-2.5 border-b border-line py-1 pr-3 pl-6 max-md:gap-1 max-md:px-1">
        {isPhone && <Back />}
        <div className="min-w-0 flex-1">
          {shown === 'title' ? <TitleField onDone={() => show(null)} /> : <Title onRename={() => show('title')} />}
          <Facts />
        </div>
        <ActionMenu actions={isPhone ? [panel, ...actions] : actions} />
        {!isPhone && (
          <IconButton
            label={tab === null ? 'Show the panel' : 'Hide the panel'}
            aria-expanded={tab !== null}
            onClick={() => showPanel(tab === null ? 'turns' : null)}
          >
            <PanelRight size={16} />
          </IconButton>
        )}
        {shown === 'verify' && <VerifyDialog onClose={() => show(null)} />}
        {shown === 'erase' && <EraseDialog onClose={() => show(null)} />}
        {shown === 'move' && <MoveDialog onClose={() => show(null)} />}
      </header>
      <StrandedNote move={move ?? null} />
    </>
  );
}

/** To the list that the conversation was opened from. */
function Back() {
  return (
    <Link
      href={`~${readPreference(LAST_TAB) ?? '/all'}`}
      aria-label="Back to the list"
      className="inline-flex size-11 shrink-0 items-center justify-center rounded-md"
    >
      <ChevronLeft size={22} aria-hidden />
    </Link>
  );
}

function Title({ onRename }: { onRename(): void }) {
  const conversation = useConversation((state) => state.conversation);
  const may = useMay('prompt');
  const name = conversation === null ? 'Untitled' : nameOf(conversation);
  return (
    <div className="group flex min-w-0 items-center gap-1">
      <h1
        className="min-w-0 truncate text-said leading-5 font-semibold"
        title={name}
        onDoubleClick={() => may && onRename()}
      >
        {name}
      </h1>
      {may && (
        <IconButton
          label="Rename"
          small
          onClick={onRename}
          className="h-5! opacity-0 group-hover:opacity-100 focus-visible:opacity-100 max-md:hidden pointer-coarse:hidden"
        >
          <Pencil size={13} />
        </IconButton>
      )}
    </div>
  );
}

/** Where it works and who answers. Only what needs somebody or has failed is said about its state. */
function Facts() {
  const conversation = useConversation((state) => state.conversation);
  const last = useConversation(({ turns, last }) => turns.get(last)?.turn ?? null);
  if (conversation === null) return null;
  const agent = last?.agent ?? conversation.lastAgent ?? conversation.agent;
  const { model, agent: chosenFor } = conversation.choices;
  const isChosen = model !== undefined && (chosenFor === undefined || chosenFor === agent);
  const project = projectOf(conversation);
  const facts: readonly (readonly [string, ReactNode])[] = [
    ['state', <Standing key="state" conversation={conversation} />],
    [
      'project',
      project && (
        <span className="inline-flex min-w-0 items-center gap-1.5" title={project.path}>
          <Folder size={13} aria-hidden className="shrink-0" />
          <span className="truncate text-ink">{project.name}</span>
        </span>
      ),
    ],
    [
      'worktree',
      conversation.worktree && (
        <span className="inline-flex min-w-0 items-center gap-1.5 max-md:hidden">
          <GitBranch size={13} aria-hidden className="shrink-0" />
          {conversation.branch !== null && <span className="truncate">{conversation.branch}</span>}
          <span className="shrink-0 text-faint">own worktree</span>
        </span>
      ),
    ],
    ['branch', <BranchedFrom key="branch" conversation={conversation} />],
    ['task', <TaskLink key="task" conversation={conversation} />],
    ['agent', agent !== null && <span className="truncate">{agent}</span>],
    ['model', isChosen && <span className="truncate max-md:hidden">{model}</span>],
    ['context', <ContextUse key="context" />],
  ];
  return (
    <div className="mt-px flex min-w-0 items-center gap-1.5 overflow-hidden text-facts whitespace-nowrap text-muted">
      {facts.map(([name, fact]) => (
        <Fragment key={name}>{fact}</Fragment>
      ))}
    </div>
  );
}

function Standing({ conversation }: { conversation: Conversation }) {
  const asks = useConversation(({ permissions }) => permissions.length > 0);
  const { running, queued } = useOpenTurns();
  const state = stateNow(conversation.state, { asks, isRunning: running !== null, isQueued: queued.length > 0 });
  const look = lookOf({ state, stranded: conversation.stranded });
  if (look === null) return null;
  return (
    <span className="inline-flex shrink-0 items-center gap-1.5 text-ink">
      <Glyph name={look.glyph} label="" className="size-3!" />
      {look.word}
    </span>
  );
}

/** Almost full: the agent will soon leave something out. */
const MUCH_PERCENT = 85;

/** How full the context of the last session is, where the agent says it. */
function ContextUse() {
  const context = useConversation(({ sessions }) => sessions[0]?.context ?? null);
  if (context === null || context.size <= 0) return null;
  const percent = Math.min(100, Math.round((100 * context.used) / context.size));
  const isMuch = percent >= MUCH_PERCENT;
  return (
    <span
      className={clsx('inline-flex shrink-0 items-center gap-1.5 tabular-nums', isMuch && 'text-look')}
      title={`${context.used.toLocaleString()} of ${context.size.toLocaleString()} tokens`}
    >
      <svg viewBox="0 0 56 5" aria-hidden className="h-[5px] w-14 max-md:hidden">
        <rect width="56" height="5" rx="2.5" className="fill-line-strong" />
        <rect
          width={(56 * percent) / 100}
          height="5"
          rx="2.5"
          className={clsx(isMuch ? 'fill-look-fill' : 'fill-muted', 'forced-colors:fill-[CanvasText]')}
        />
      </svg>
      <span className="max-md:hidden">Context</span> {percent} %
    </span>
  );
}

/** A fork, with a way to the conversation that it was taken from. */
function BranchedFrom({ conversation }: { conversation: Conversation }) {
  const known = useList((list) => list.known);
  const { parent } = conversation;
  if (parent === null) return null;
  const of = known.get(parent.conversationId);
  const isTwin = branchOf(conversation, () => of?.title) !== null;
  return (
    <Link
      href={`~/c/${parent.conversationId}/turn/${parent.n}`}
      className="truncate underline decoration-control underline-offset-3"
    >
      branched {!isTwin && of !== undefined && `from “${nameOf(of)}” `}after turn {parent.n}
    </Link>
  );
}

function TaskLink({ conversation }: { conversation: Conversation }) {
  const path = useTasks(({ tasks }) => taskPathOf(conversation, tasks));
  if (path === null) return null;
  return (
    <Link
      href={`~${path}`}
      className="inline-flex shrink-0 items-center gap-1 underline decoration-control underline-offset-3"
    >
      <ListChecks size={13} aria-hidden />
      Task
    </Link>
  );
}

function ActionMenu({ actions }: { actions: readonly Action[] }) {
  return (
    <Menu.Root>
      <Menu.Trigger render={<IconButton label="Conversation actions">{<Ellipsis size={16} />}</IconButton>} />
      <Menu.Portal>
        <Menu.Positioner align="end" sideOffset={4} className="z-40">
          <Menu.Popup className="min-w-56 rounded-lg border border-line bg-raised p-1 text-ui shadow-xl outline-none">
            {actions.map(({ id, title, run }) => (
              <Menu.Item
                key={id}
                onClick={run}
                className="flex min-h-7 cursor-default items-center rounded-md px-2 outline-none data-highlighted:bg-hover pointer-coarse:min-h-11"
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
