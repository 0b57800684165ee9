import { clsx } from 'clsx';
import {
  Archive,
  Check,
  Inbox,
  ListChecks,
  type LucideIcon,
  Search as SearchIcon,
  Settings,
  SquarePen,
} from 'lucide-react';
import { type ReactNode, useEffect, useMemo, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { useAgents } from '../data/agents.ts';
import { useList } from '../data/list.ts';
import { useClient, useMay } from '../data/session.ts';
import { useTasks } from '../data/tasks.ts';
import { useForYou } from '../for-you/use-for-you.ts';
import { SearchField } from '../search/field.tsx';
import { SearchResults } from '../search/results.tsx';
import { useSearch } from '../search/search.ts';
import { useActions } from '../shell/actions.ts';
import { IconButton } from '../ui/button.tsx';
import { Mark } from '../ui/mark.tsx';
import { ErrorNote, Skeleton } from '../ui/notes.tsx';
import { Glyph } from '../ui/state.tsx';
import { Rows } from './rows.tsx';

/** The navigation of a wide screen: the main views, a search over everything, and all conversations. */
export function Rail() {
  return (
    <>
      <Top
        name={
          <Link href="/" className="flex min-w-0 flex-1 items-center gap-2 text-said font-semibold tracking-tight">
            <Mark />
            Throughline
          </Link>
        }
        keys
      >
        <MainLinks />
      </Top>
      <Foot />
    </>
  );
}

/** `/all`: the same list, as a view of a phone. */
export function AllView() {
  return (
    <div className="flex min-h-0 flex-1 flex-col short:h-dvh short:flex-none">
      <Top
        name={
          <h1 className="flex min-w-0 flex-1 items-center gap-2 text-view font-semibold tracking-tight">
            <Mark size={28} />
            All
          </h1>
        }
      />
      <Foot />
    </div>
  );
}

/** The name and its two buttons, and below them the list, or what a search found. `keys`: whether they have keys. */
function Top({ name, keys = false, children }: { name: ReactNode; keys?: boolean; children?: ReactNode }) {
  const search = useSearch();
  const [isSearching, setSearching] = useState(false);
  const mayPrompt = useMay('prompt');
  const [, go] = useLocation();
  const begin = () => go('/new');
  const find = () => {
    setSearching(true);
    document.querySelector<HTMLInputElement>('[data-search]')?.select();
  };
  useActions(keys ? [findAction(find), ...(mayPrompt ? [beginAction(begin)] : [])] : []);
  return (
    <>
      <div className="flex min-h-13 shrink-0 items-center gap-1 border-line py-1 pr-2 pl-3.5 max-md:border-b">
        {name}
        <IconButton label="Search" {...(keys && { keys: '/' })} aria-expanded={isSearching} onClick={find}>
          <SearchIcon size={16} />
        </IconButton>
        {mayPrompt && (
          <IconButton
            label="New conversation"
            {...(keys && { keys: 'c' })}
            look="plain"
            className="max-md:border-transparent max-md:bg-transparent"
            onClick={begin}
          >
            <SquarePen size={15} />
          </IconButton>
        )}
      </div>
      {isSearching ? (
        <>
          <SearchField
            search={search}
            onEnd={() => {
              search.setWords('');
              setSearching(false);
            }}
          />
          <SearchResults search={search} />
        </>
      ) : (
        <>
          {children}
          <List hasKeys={keys} />
        </>
      )}
    </>
  );
}

function List({ hasKeys }: { hasKeys: boolean }) {
  const { phase, error } = useList();
  if (phase === 'ready') return <Rows hasKeys={hasKeys} />;
  return (
    <div className="min-h-0 flex-1 px-3.5">
      {phase === 'failed' ? <ErrorNote error={error} cli="throughline list" /> : <Skeleton lines={6} />}
    </div>
  );
}

function findAction(run: () => void) {
  const words = { id: 'search', title: 'Search all conversations', group: 'Conversations', keys: '/' };
  return { ...words, cli: 'throughline search WORDS', run };
}

function beginAction(run: () => void) {
  const words = { id: 'conversation.new', title: 'New conversation', group: 'Conversations', keys: 'c' };
  return { ...words, cli: 'throughline send KEY "PROMPT" --agent NAME', run };
}

function MainLinks() {
  const { needs } = useForYou();
  const working = useTasks(({ tasks }) => tasks.filter(({ state }) => state === 'running').length);
  const [path] = useLocation();
  const count = needs.length;
  return (
    <nav aria-label="Main" className="shrink-0 px-2 pb-1.5">
      <MainLink href="/" label="For you" icon={Inbox}>
        {count > 0 && (
          // Beside the list of what needs somebody, the number need not stand out.
          <span
            className={clsx(
              'text-facts tabular-nums',
              path === '/' && 'rounded-full bg-look-fill px-1.5 leading-[1.125rem] font-semibold text-on-look',
            )}
          >
            {count}
            <span className="sr-only">{count === 1 ? ' needs you' : ' need you'}</span>
          </span>
        )}
      </MainLink>
      <MainLink href="/tasks" label="Tasks" icon={ListChecks}>
        {working > 0 && <span className="text-facts text-faint tabular-nums">{working} working</span>}
      </MainLink>
    </nav>
  );
}

interface MainLinkProps {
  readonly href: string;
  readonly label: string;
  readonly icon: LucideIcon;
  readonly children: ReactNode;
}

function MainLink({ href, label, icon: Icon, children }: MainLinkProps) {
  const [path] = useLocation();
  const isHere = href === '/' ? path === '/' : path.startsWith(href);
  return (
    <Link
      href={href}
      aria-current={isHere ? 'page' : undefined}
      className={clsx(
        'flex min-h-7 items-center gap-2 rounded-md px-2 pointer-coarse:min-h-11',
        isHere ? 'bg-hover text-ink' : 'text-muted hover:bg-hover hover:text-ink',
      )}
    >
      <Icon size={15} aria-hidden />
      <span className="flex-1">{label}</span>
      {children}
    </Link>
  );
}

/** Whether agents can work, and the way to the settings. */
function Foot() {
  const mayPrompt = useMay('prompt');
  return (
    <div className="flex min-h-10.5 shrink-0 items-center gap-2 border-t border-line py-1 pr-2 pl-3.5 text-facts text-muted">
      <span className="flex min-w-0 flex-1 items-center gap-2">
        <PutAway />
        {!mayPrompt && <span className="truncate text-look">Read only</span>}
      </span>
      <AgentsReady />
      <Link
        href="/health"
        aria-label="Settings and health"
        className="inline-flex size-7 items-center justify-center rounded-md hover:bg-hover hover:text-ink pointer-coarse:size-11"
      >
        <Settings size={14} aria-hidden />
      </Link>
    </div>
  );
}

/** How many conversations were put away, and the way to them. */
function PutAway() {
  const { engine } = useClient();
  const known = useList((list) => list.known);
  const listed = useMemo(() => [...known.values()].filter(({ putAway }) => putAway).length, [known]);
  const [count, setCount] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: counted again when one more or less is known
  useEffect(() => {
    let isCurrent = true;
    engine.countPutAway().then(
      (all) => isCurrent && setCount(all),
      () => {}, // it is counted again after the next change
    );
    return () => {
      isCurrent = false;
    };
  }, [engine, listed]);
  if (count === 0) return null;
  return (
    <Link href="/put-away" className="flex min-w-0 items-center gap-2 hover:text-ink pointer-coarse:min-h-11">
      <Archive size={14} aria-hidden className="shrink-0" />
      <span className="truncate">{count} put away</span>
    </Link>
  );
}

function AgentsReady() {
  const { phase, agents } = useAgents();
  if (phase !== 'ready') return null;
  const ready = agents.filter(({ problem }) => problem === null).length;
  const isAll = ready === agents.length && ready > 0;
  return (
    <Link href="/health" className="flex shrink-0 items-center gap-1.5 pointer-coarse:min-h-11">
      {isAll ? <Check size={14} className="text-accent" aria-hidden /> : <Glyph name="needs" label="" />}
      {isAll ? '' : `${ready} of `}
      {agents.length} {agents.length === 1 ? 'agent' : 'agents'} ready
    </Link>
  );
}
