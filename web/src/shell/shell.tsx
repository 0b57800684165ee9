import { Activity, Inbox as InboxIcon, ListChecks, MessageSquare, X } from 'lucide-react';
import { Suspense, useDeferredValue, useEffect, useRef, useState } from 'react';
import { Link, Route, Switch, useLocation, useRoute } from 'wouter';
import { LiveRegions } from '../announce/live-regions.tsx';
import { useInboxNews } from '../announce/use-news.ts';
import { useFreeDrafts } from '../data/drafts/free.ts';
import { useKeepList, useList } from '../data/list.ts';
import { useKeepNeeds } from '../data/needs.ts';
import { usePreference } from '../data/preferences.ts';
import { markSeen } from '../data/seen.ts';
import { DEMO_SEAM, isDemo } from '../first-run/steps.ts';
import { Inbox } from '../inbox/inbox.tsx';
import { useNotifications } from '../inbox/notify.ts';
import { titleOf } from '../inbox/sections.ts';
import { useInbox } from '../inbox/use-inbox.ts';
import { Rail } from '../rail/rail.tsx';
import { Button, IconButton } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { lazily, NotLoaded } from '../ui/lazily.tsx';
import { Empty, Skeleton } from '../ui/notes.tsx';
import { dismissAll, dismissToast, type Toast, useToasts } from '../ui/say.ts';
import { nameOf } from '../ui/state.tsx';
import { type Action, useActions } from './actions.ts';
import { ConnectionStrip } from './connection-strip.tsx';
import { useKeyboard } from './keyboard.ts';
import { useApplyScheme } from './scheme.ts';

const ConversationView = lazily(async () => (await import('../conversation/conversation-view.tsx')).ConversationView);
const NewConversation = lazily(async () => (await import('../composer/new.tsx')).NewConversation);
const Tasks = lazily(async () => (await import('../tasks/tasks.tsx')).Tasks);
const Palette = lazily(async () => (await import('../palette/palette.tsx')).Palette, NotLoadedDialog);
const Help = lazily(async () => (await import('../palette/help.tsx')).Help, NotLoadedDialog);
const Health = lazily(async () => (await import('../health/health.tsx')).Health);

/** The frame of every view: the rail beside it, or below it on a phone. */
export function Shell() {
  useKeepList();
  useFreeDrafts();
  useKeepNeeds();
  useKeyboard();
  useApplyScheme();
  const [railOpen, setRailOpen] = useState(false);
  return (
    <div className="flex h-dvh flex-col sm:flex-row">
      <aside
        className="hidden w-72 shrink-0 border-r border-line bg-rail sm:flex sm:flex-col"
        aria-label="Conversations"
      >
        <Rail />
      </aside>
      <main className="relative flex min-h-0 min-w-0 flex-1 flex-col">
        <ConnectionStrip />
        <View />
      </main>
      <BottomBar onConversations={() => setRailOpen(true)} />
      <Dialog open={railOpen} onClose={() => setRailOpen(false)} title="Conversations" shape="sheet">
        <div className="flex h-[75dvh] flex-col">
          <Rail isSheet onChosen={() => setRailOpen(false)} />
        </div>
      </Dialog>
      <Overlays />
      <Toasts />
      <LiveRegions />
      <Attention />
    </div>
  );
}

/** The view of the current address. The previous view stays until the next one is loaded. */
function View() {
  const [path, go] = useLocation();
  useActions(goActions(go));
  const loaded = useDeferredValue(path);
  // From one conversation to another no code has to be loaded.
  const shown = isConversation(path) && isConversation(loaded) ? path : loaded;
  return (
    <Suspense fallback={<Skeleton lines={6} />}>
      <Switch location={shown}>
        <Route path="/" component={Inbox} />
        <Route path="/new" component={NewConversation} />
        <Route path="/c/:id" nest>
          {({ id }) => <ConversationView id={id} />}
        </Route>
        <Route path="/tasks/:id?">{({ id }) => <Tasks id={id ?? null} />}</Route>
        <Route path="/health" component={Health} />
        <Route>
          <Empty title="Page not found.">
            <Link href="/" className="touch text-ink underline decoration-control underline-offset-3">
              Go to the inbox
            </Link>
          </Empty>
        </Route>
      </Switch>
    </Suspense>
  );
}

function isConversation(path: string): boolean {
  return path.startsWith('/c/');
}

/** The palette and the help. The palette is preloaded, because keys that are typed before it is shown would do something else. */
function Overlays() {
  const [shown, setShown] = useState<'palette' | 'help' | null>(null);
  const close = () => setShown(null);
  useEffect(() => {
    const timer = setTimeout(() => Palette.preload(), 1_000);
    return () => clearTimeout(timer);
  }, []);
  const group = 'Help';
  useActions([
    { id: 'palette', title: 'Command palette', group, keys: 'Mod+K', run: () => setShown('palette') },
    { id: 'help.keys', title: 'Keyboard shortcuts and commands', group, keys: '?', run: () => setShown('help') },
  ]);
  return (
    <Suspense fallback={null}>
      {shown === 'palette' && <Palette onClose={close} />}
      {shown === 'help' && <Help onClose={close} />}
    </Suspense>
  );
}

function NotLoadedDialog({ onClose }: { onClose(): void }) {
  return (
    <Dialog open onClose={onClose} title="Not loaded">
      <NotLoaded />
    </Dialog>
  );
}

/** Effects of the list of conversations. A component of its own, so that a change of the list does not render the whole page. */
function Attention() {
  useAttention();
  useDemoFirst();
  return null;
}

/** Shows in the title, and as notifications, how much needs a person. The open conversation is marked as seen. */
function useAttention(): void {
  const inbox = useInbox();
  const [, go] = useLocation();
  const [, place] = useRoute('/c/:id/*?');
  const row = useList(({ known }) => known.get(place?.id ?? ''));
  const isReady = useList(({ phase }) => phase === 'ready');
  useNotifications(inbox, isReady, go);
  useInboxNews(inbox, isReady, place?.id ?? null);
  useEffect(() => {
    const name = place === null || row === undefined ? null : nameOf(row);
    document.title = titleOf(inbox.needs.length, name);
  }, [inbox.needs.length, place, row]);
  useEffect(() => {
    const look = () => row !== undefined && document.visibilityState === 'visible' && markSeen(row);
    look();
    document.addEventListener('visibilitychange', look);
    return () => document.removeEventListener('visibilitychange', look);
  }, [row]);
}

/** On the first visit, if there is only the demo: opens the demo at its seam. */
function useDemoFirst(): void {
  const [path, go] = useLocation();
  const [visited, setVisited] = usePreference('first-run.visited');
  const isReady = useList(({ phase }) => phase === 'ready');
  const only = useList(({ rows, hasMore }) => (rows.length === 1 && !hasMore ? rows[0] : undefined));
  useEffect(() => {
    if (!isReady || visited !== null) return;
    setVisited('yes');
    if (path === '/' && only !== undefined && isDemo(only.key))
      go(`/c/${only.id}/seam/${DEMO_SEAM}`, { replace: true });
  }, [isReady, visited, setVisited, path, only, go]);
}

function goActions(go: (path: string) => void): Action[] {
  const group = 'Go to';
  return [
    { id: 'go.inbox', title: 'Inbox', group, keys: 'g i', run: () => go('/') },
    { id: 'go.tasks', title: 'Tasks', group, keys: 'g t', run: () => go('/tasks') },
    { id: 'go.health', title: 'Health', group, keys: 'g h', run: () => go('/health') },
  ];
}

const TAB =
  'flex min-h-12 flex-1 flex-col items-center justify-center gap-0.5 text-facts text-muted aria-[current=page]:text-accent';

/** The main navigation of a phone, within reach of a thumb. */
function BottomBar({ onConversations }: { onConversations(): void }) {
  const [path] = useLocation();
  const tab = (href: string, label: string, Icon: typeof Activity) => (
    <Link href={href} className={TAB} aria-current={path === href ? 'page' : undefined}>
      <Icon size={20} aria-hidden />
      {label}
    </Link>
  );
  return (
    <nav
      aria-label="Main"
      className="flex shrink-0 border-t border-line bg-raised pb-[env(safe-area-inset-bottom)] sm:hidden"
    >
      {tab('/', 'Inbox', InboxIcon)}
      <button type="button" className={TAB} onClick={onConversations}>
        <MessageSquare size={20} aria-hidden />
        Conversations
      </button>
      {tab('/tasks', 'Tasks', ListChecks)}
      {tab('/health', 'Health', Activity)}
    </nav>
  );
}

const TONES: Readonly<Record<Toast['tone'], string>> = { good: 'text-accent', bad: 'text-broken', plain: 'text-ink' };

/** Messages of the page, also for screen readers. They are below the header: further down they would cover the composer. */
function Toasts() {
  const toasts = useToasts();
  const box = useRef<HTMLDivElement>(null);
  const newest = toasts.at(-1)?.id;
  useEffect(() => {
    if (newest !== undefined) box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [newest]);
  return (
    <div
      ref={box}
      role="status"
      aria-label="Messages"
      aria-live="polite"
      className="pointer-events-none fixed right-1 top-[calc(env(safe-area-inset-top)+3.25rem)] z-50 flex max-h-[50dvh] max-w-[calc(100vw-0.5rem)] flex-col items-end gap-2 overflow-y-auto overscroll-contain p-1 pr-2"
    >
      {toasts.length > 2 && (
        <Button small className="pointer-events-auto sticky top-0 shadow-lg" onClick={dismissAll}>
          Close all {toasts.length} messages
        </Button>
      )}
      <ul className="contents">
        {toasts.map((toast) => (
          <ToastItem key={toast.id} {...toast} />
        ))}
      </ul>
    </div>
  );
}

function ToastItem({ id, text, hint, tone, times }: Toast) {
  return (
    <li className="pointer-events-auto flex max-w-md shrink-0 items-center gap-2 rounded-lg border border-line bg-raised py-1.5 pl-3 pr-1.5 text-ui shadow-lg">
      <div className="min-w-0 wrap-anywhere">
        <p className={TONES[tone]}>
          {text}
          {times > 1 && <span className="text-muted"> ({times} times)</span>}
        </p>
        {hint !== undefined && <p className="text-muted">{hint}</p>}
      </div>
      <IconButton label="Close" small onClick={() => dismissToast(id)}>
        <X size={14} />
      </IconButton>
    </li>
  );
}
