import { clsx } from 'clsx';
import {
  Activity,
  Inbox as InboxIcon,
  Keyboard,
  ListChecks,
  type LucideIcon,
  Monitor,
  Moon,
  SquarePen,
  Sun,
  UserRound,
} from 'lucide-react';
import { Link, useLocation } from 'wouter';
import { useList } from '../data/list.ts';
import { useMay, useMe } from '../data/session.ts';
import { useInbox } from '../inbox/use-inbox.ts';
import { SearchField } from '../search/field.tsx';
import { SearchResults } from '../search/results.tsx';
import { useSearch } from '../search/search.ts';
import { allActions, useActions } from '../shell/actions.ts';
import { SCHEMES, useScheme } from '../shell/scheme.ts';
import { IconButton } from '../ui/button.tsx';
import { ErrorNote, Skeleton } from '../ui/notes.tsx';
import { tip } from '../ui/tip.tsx';
import { Filters } from './filters.tsx';
import { Rows } from './rows.tsx';

const NOTHING = () => {};

/** The navigation: the main views, a search over everything, and all conversations, most recently changed first. */
export function Rail({ onChosen = NOTHING, isSheet = false }: { onChosen?: () => void; isSheet?: boolean }) {
  const { phase, rows, error } = useList();
  const search = useSearch();
  const mayPrompt = useMay('prompt');
  const [, go] = useLocation();
  const begin = () => {
    onChosen();
    go('/new');
  };
  useActions(mayPrompt && !isSheet ? [beginAction(begin)] : []);
  const isSearching = search.words !== '';
  return (
    <>
      {!isSheet && (
        <div className="flex h-12 shrink-0 items-center gap-1 pr-2 pl-4">
          <Link href="/" className="min-w-0 flex-1 truncate font-semibold">
            Throughline
          </Link>
          {mayPrompt && (
            <IconButton label="New conversation" keys="c" onClick={begin}>
              <SquarePen size={17} />
            </IconButton>
          )}
        </div>
      )}
      {!isSheet && <MainLinks />}
      <div className="shrink-0 space-y-1.5 px-3 py-2">
        <div className="flex gap-1">
          <SearchField search={search} offersKey={!isSheet} />
          {isSheet && mayPrompt && (
            <IconButton label="New conversation" onClick={begin}>
              <SquarePen size={17} />
            </IconButton>
          )}
        </div>
        {!isSearching && <Filters />}
      </div>
      {isSearching ? (
        <SearchResults search={search} onChosen={onChosen} />
      ) : (
        <>
          {phase === 'loading' && (
            <div className="min-h-0 flex-1">
              <Skeleton lines={6} />
            </div>
          )}
          {phase === 'failed' && (
            <div className="min-h-0 flex-1 px-3">
              <ErrorNote error={error} cli="throughline list" />
            </div>
          )}
          {phase === 'ready' && <Rows rows={rows} onChosen={onChosen} hasKeys={!isSheet} />}
        </>
      )}
      <Foot />
    </>
  );
}

function beginAction(run: () => void) {
  return {
    ...{ id: 'conversation.new', title: 'New conversation', group: 'Conversations', keys: 'c' },
    ...{ cli: 'throughline send KEY "PROMPT" --agent NAME', run },
  };
}

function MainLinks() {
  const { needs } = useInbox();
  return (
    <nav aria-label="Main" className="shrink-0 px-2">
      <MainLink href="/" label="Inbox" icon={InboxIcon} count={needs.length} />
      <MainLink href="/tasks" label="Tasks" icon={ListChecks} />
      <MainLink href="/health" label="Health" icon={Activity} />
    </nav>
  );
}

function MainLink({
  href,
  label,
  icon: Icon,
  count = 0,
}: {
  href: string;
  label: string;
  icon: LucideIcon;
  count?: number;
}) {
  const [path] = useLocation();
  const isHere = href === '/' ? path === '/' : path.startsWith(href);
  return (
    <Link
      href={href}
      aria-current={isHere ? 'page' : undefined}
      className={clsx(
        'flex h-8 items-center gap-2 rounded-md px-2 text-ui',
        isHere ? 'bg-hover font-medium' : 'text-muted hover:bg-hover hover:text-ink',
      )}
    >
      <Icon size={16} aria-hidden />
      <span className="flex-1">{label}</span>
      {count > 0 && (
        <span className="rounded-full bg-look-fill px-1.5 text-facts leading-[18px] font-semibold text-on-look tabular-nums">
          {count}
          <span className="sr-only">{count === 1 ? ' needs you' : ' need you'}</span>
        </span>
      )}
    </Link>
  );
}

const ICONS = { system: Monitor, light: Sun, dark: Moon };

/** Who is signed in, and the colour scheme. */
function Foot() {
  const { owner, scopes } = useMe();
  const [scheme, next] = useScheme();
  const Icon = ICONS[scheme];
  const signedInAs = `Signed in as ${owner}. Scopes: ${scopes.join(', ')}`;
  return (
    <div className="flex min-h-11 shrink-0 items-center gap-1 border-t border-line pr-2 pl-3 text-facts text-muted">
      <button
        type="button"
        className="flex min-w-0 flex-1 items-center gap-1.5 text-left pointer-coarse:min-h-11"
        aria-label={signedInAs}
        {...tip(signedInAs)}
      >
        <UserRound size={14} aria-hidden className="shrink-0" />
        <span className="truncate">{owner}</span>
        {!scopes.includes('prompt') && <span className="shrink-0 text-look">read only</span>}
      </button>
      <IconButton label={`Colour scheme: ${SCHEMES[scheme]}`} small onClick={next}>
        <Icon size={15} />
      </IconButton>
      <IconButton
        label="Keyboard shortcuts"
        keys="?"
        small
        onClick={() =>
          allActions()
            .find(({ id }) => id === 'help.keys')
            ?.run()
        }
      >
        <Keyboard size={15} />
      </IconButton>
    </div>
  );
}
