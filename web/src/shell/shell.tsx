import { Inbox, ListChecks, type LucideIcon, MessagesSquare, X } from 'lucide-react';
import { Suspense, useDeferredValue, useEffect, useRef, useState } from 'react';
import { Link, Redirect, Route, Switch, useLocation, useRoute } from 'wouter';
import { LiveRegions } from '../announce/live-regions.tsx';
import { useForYouNews } from '../announce/use-news.ts';
import { useFreeDrafts } from '../data/drafts/free.ts';
import { useKeepList, useList } from '../data/list.ts';
import { useKeepNeeds } from '../data/needs.ts';
import { usePreference, writePreference } from '../data/preferences.ts';
import { markSeen } from '../data/seen.ts';
import { useKeepTasks } from '../data/tasks.ts';
import { DEMO_SEAM, isDemo } from '../first-run/steps.ts';
import { useNotifications } from '../for-you/notify.ts';
import { titleOf } from '../for-you/sections.ts';
import { useForYou } from '../for-you/use-for-you.ts';
import { AllView, Rail } from '../rail/rail.tsx';
import { Button, IconButton } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { lazily, NotLoaded } from '../ui/lazily.tsx';
import { Empty, Skeleton } from '../ui/notes.tsx';
import { dismissAll, dismissToast, type Toast, useToasts } from '../ui/say.ts';
import { LAST_TAB, useIsPhone } from '../ui/screen.ts';
import { branchOf, nameOf } from '../ui/state.tsx';
import { type Action, useActions } from './actions.ts';
import { ConnectionStrip } from './connection-strip.tsx';
import { useKeyboard } from './keyboard.ts';
import { useApplyScheme } from './scheme.ts';

const ConversationView = lazily(async () => (await import('../conversation/conversation-view.tsx')).ConversationView);
const ForYou = lazily(async () => (await import('../for-you/for-you.tsx')).ForYou);
const NewConversation = lazily(async () => (await import('../composer/new.tsx')).NewConversation);
const Tasks = lazily(async () => (await import('../tasks/tasks.tsx')).Tasks);
const PutAway = lazily(async () => (await import('../rail/put-away.tsx')).PutAway);
const Palette = lazily(async () => (await import('../palette/palette.tsx')).Palette, NotLoadedDialog);
const Help = lazily(async () => (await import('../palette/help.tsx')).Help, NotLoadedDialog);
const Health = lazily(async () => (await import('../health/health.tsx')).Health);

/** The frame of every view: the rail beside it, or on a phone the tabs below it. */
export function Shell() {
  useKeepList();
  useFreeDrafts();
  useKeepNeeds();
  useKeepTasks();
  useKeyboard();
  useApplyScheme();
  const isPhone = useIsPhone();
  return (
    <div className="grid h-dvh short:h-auto short:min-h-dvh grid-rows-[minmax(0,1fr)_auto] md:grid-cols-[17rem_minmax(0,1fr)] md:grid-rows-[minmax(0,1fr)]">
      {!isPhone && (
        <aside className="flex min-h-0 flex-col border-r border-line bg-rail short:h-dvh" aria-label="Conversations">
          <Rail />
        </aside>
      )}
      <main className="relative flex min-h-0 min-w-0 flex-col">
        <ConnectionStrip />
        <View isPhone={isPhone} />
      </main>
      {isPhone && <TabBar />}
      <Overlays />
      <Toasts />
      <LiveRegions />
      <Attention />
    </div>
  );
}

/** The view of the current address. The previous view stays until the next one is loaded. */
function View({ isPhone }: { isPhone: boolean }) {
  const [path, go] = useLocation();
  useActions(goActions(go));
  const loaded = useDeferredValue(path);
  // From one conversation to another no code has to be loaded.
  const shown = isConversation(path) && isConversation(loaded) ? path : loaded;
  return (
    <Suspense fallback={<Skeleton lines={6} />}>
      <Switch location={shown}>
        <Route path="/" component={ForYou} />
        <Route path="/all">{isPhone ? <AllView /> : <Redirect to="/" replace />}</Route>
        <Route path="/new" component={NewConversation} />
        <Route path="/c/:id" nest>
          {({ id }) => <ConversationView id={id} />}
        </Route>
        <Route path="/tasks/:id?">{({ id }) => <Tasks id={id ?? null} />}</Route>
        <Route path="/health" component={Health} />
        <Route path="/put-away" component={PutAway} />
        <Route>
          <Empty title="Page not found.">
            <Link href="/" className="touch text-ink underline decoration-control underline-offset-3">
              Go to “For you”
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
  const sections = useForYou();
  const [, go] = useLocation();
  const [, place] = useRoute('/c/:id/*?');
  const row = useList(({ known }) => known.get(place?.id ?? ''));
  const parentTitle = useList(({ known }) => known.get(row?.parent?.conversationId ?? '')?.title);
  const isReady = useList(({ phase }) => phase === 'ready');
  useNotifications(sections, isReady, go);
  useForYouNews(sections, isReady, place?.id ?? null);
  useEffect(() => {
    const branch = row && branchOf(row, () => parentTitle);
    const name = place === null || row === undefined ? null : [nameOf(row), branch].filter(Boolean).join(', ');
    document.title = titleOf(sections.needs.length, name);
  }, [sections.needs.length, place, row, parentTitle]);
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
    { id: 'go.for-you', title: 'For you', group, keys: 'g f', run: () => go('/') },
    { id: 'go.tasks', title: 'Tasks', group, keys: 'g t', run: () => go('/tasks') },
    { id: 'go.put-away', title: 'Conversations that were put away', group, run: () => go('/put-away') },
    { id: 'go.health', title: 'Settings and health', group, keys: 'g h', run: () => go('/health') },
  ];
}

const TABS: readonly (readonly [string, string, LucideIcon])[] = [
  ['/', 'For you', Inbox],
  ['/all', 'All', MessagesSquare],
  ['/tasks', 'Tasks', ListChecks],
];

/** The main views of a phone, within reach of a thumb. Not in a conversation, and not above the screen keyboard. */
function TabBar() {
  const [path] = useLocation();
  const { needs } = useForYou();
  const isTab = TABS.some(([href]) => href === path);
  const isBeside = path === '/health' || path === '/put-away';
  useEffect(() => {
    if (isTab) writePreference(LAST_TAB, path);
  }, [isTab, path]);
  if (!isTab && !isBeside) return null;
  return (
    <nav
      aria-label="Main"
      className="grid grid-cols-3 border-t border-line bg-rail pb-[max(0.5rem,env(safe-area-inset-bottom))] [:has(input:focus,textarea:focus)>&]:hidden"
    >
      {TABS.map(([href, label, Icon]) => (
        <Link
          key={href}
          href={href}
          aria-current={path === href ? 'page' : undefined}
          className="relative flex min-h-12 flex-col items-center justify-center gap-0.5 text-facts text-muted aria-[current=page]:font-semibold aria-[current=page]:text-ink"
        >
          <Icon size={20} aria-hidden />
          {label}
          {href === '/' && needs.length > 0 && (
            <span className="absolute top-1 left-[calc(50%+0.5rem)] rounded-full bg-look-fill px-1.5 leading-4 font-semibold text-on-look tabular-nums">
              {needs.length}
              <span className="sr-only">{needs.length === 1 ? ' needs you' : ' need you'}</span>
            </span>
          )}
        </Link>
      ))}
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
