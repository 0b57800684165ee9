import { Menu } from '@base-ui/react/menu';
import { Tabs } from '@base-ui/react/tabs';
import { clsx } from 'clsx';
import { Ellipsis } from 'lucide-react';
import { Suspense, useEffect } from 'react';
import { useLocation } from 'wouter';
import { create } from 'zustand';
import { usePreference } from '../data/preferences.ts';
import { useActions } from '../shell/actions.ts';
import { IconButton } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { lazily } from '../ui/lazily.tsx';
import { Skeleton } from '../ui/notes.tsx';
import { useIsWide } from '../ui/screen.ts';

const Turns = lazily(async () => (await import('./turns.tsx')).Turns);
const Changes = lazily(async () => (await import('./changes.tsx')).Changes);
const Sessions = lazily(async () => (await import('./sessions.tsx')).Sessions);
const UsageTab = lazily(async () => (await import('./usage.tsx')).UsageTab);
const Raw = lazily(async () => (await import('./raw.tsx')).Raw);

/** The first three are the outline, which is narrow. The others are behind a button, and need more room. */
const TABS = [
  ['turns', 'Turns', Turns],
  ['changes', 'Changes', Changes],
  ['sessions', 'Sessions', Sessions],
  ['usage', 'Usage', UsageTab],
  ['raw', 'Raw', Raw],
] as const;

const MORE: readonly PanelTab[] = ['usage', 'raw'];
const NARROW: readonly PanelTab[] = ['turns', 'sessions'];

export type PanelTab = (typeof TABS)[number][0];

/** The stored choice of those who have closed the panel. */
const CLOSED = 'closed';

interface Sheet {
  readonly tab: PanelTab | null;
}

const useSheet = create<Sheet>(() => ({ tab: null }));

/**
 * Which tab of the panel is shown; null: the panel is closed. On a wide screen it is open at first, and the choice is stored for all
 * conversations. On a narrow one it covers the conversation, and stays open until somebody closes it or opens another address.
 */
export function usePanel(): readonly [PanelTab | null, (tab: PanelTab | null) => void] {
  const isWide = useIsWide();
  const [kept, keep] = usePreference('panel');
  const sheet = useSheet();
  if (!isWide) return [sheet.tab, (tab) => useSheet.setState({ tab })];
  const shown = kept === CLOSED ? null : (TABS.find(([name]) => name === kept)?.[0] ?? 'turns');
  return [shown, (tab) => keep(tab ?? CLOSED)];
}

/** The outline of a conversation, its changed files and sessions, its usage and its events. */
export function Panel() {
  const [tab, show] = usePanel();
  const isWide = useIsWide();
  const [path] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another address closes the sheet
  useEffect(() => () => useSheet.setState({ tab: null }), [path]);
  useActions(
    TABS.map(([name, title]) => ({
      id: `panel.${name}`,
      title: `Show: ${title}`,
      group: 'Panel',
      run: () => show(name),
    })),
  );
  if (tab === null) return null;
  if (!isWide) {
    return (
      <Dialog open onClose={() => show(null)} title="Panel" shape="sheet">
        <Content tab={tab} show={show} />
      </Dialog>
    );
  }
  return (
    <aside
      aria-label="Panel"
      className={clsx(
        'flex shrink-0 flex-col border-l border-line bg-canvas',
        NARROW.includes(tab) ? 'w-[14.75rem]' : 'w-90',
      )}
    >
      <Content tab={tab} show={show} />
    </aside>
  );
}

function Content({ tab, show }: { tab: PanelTab; show(tab: PanelTab): void }) {
  return (
    <Tabs.Root value={tab} onValueChange={(value) => show(value as PanelTab)} className="flex min-h-0 flex-1 flex-col">
      <div className="flex h-13 shrink-0 items-center gap-0.5 border-b border-line px-2">
        <Tabs.List className="flex min-w-0 items-center gap-0.5" aria-label="Panel">
          {TABS.filter(([name]) => !MORE.includes(name) || name === tab).map(([name, title]) => (
            <Tabs.Tab
              key={name}
              value={name}
              className="rounded-md px-1.5 py-1 text-ui text-muted hover:text-ink data-active:bg-hover data-active:font-semibold data-active:text-ink pointer-coarse:min-h-11 pointer-coarse:min-w-11"
            >
              {title}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <span className="flex-1" />
        <More show={show} />
      </div>
      {TABS.map(([name, , Tab]) => (
        <Tabs.Panel key={name} value={name} className="min-h-0 flex-1 overflow-y-auto">
          <Suspense fallback={<Skeleton lines={5} />}>
            <Tab />
          </Suspense>
        </Tabs.Panel>
      ))}
    </Tabs.Root>
  );
}

/** The tabs that are seldom needed. */
function More({ show }: { show(tab: PanelTab): void }) {
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger
        render={
          <IconButton small label="More about the conversation">
            <Ellipsis size={15} />
          </IconButton>
        }
      />
      <Menu.Portal>
        <Menu.Positioner align="end" sideOffset={4} className="z-50">
          <Menu.Popup className="min-w-40 rounded-lg border border-line bg-raised p-1 shadow-lg outline-none">
            {TABS.filter(([name]) => MORE.includes(name)).map(([name, title]) => (
              <Menu.Item
                key={name}
                onClick={() => show(name)}
                className="flex min-h-8 cursor-default items-center rounded-sm px-2 text-ui outline-none data-highlighted:bg-hover pointer-coarse:min-h-11"
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
