import { Tabs } from '@base-ui/react/tabs';
import { Suspense, useEffect } from 'react';
import { useLocation } from 'wouter';
import { create } from 'zustand';
import { usePreference } from '../data/preferences.ts';
import { useActions } from '../shell/actions.ts';
import { Dialog } from '../ui/dialog.tsx';
import { lazily } from '../ui/lazily.tsx';
import { Skeleton } from '../ui/notes.tsx';
import { useIsWide } from '../ui/screen.ts';

const Lineage = lazily(async () => (await import('./lineage.tsx')).Lineage);
const UsageTab = lazily(async () => (await import('./usage.tsx')).UsageTab);
const Changes = lazily(async () => (await import('./changes.tsx')).Changes);
const Raw = lazily(async () => (await import('./raw.tsx')).Raw);

const TABS = [
  ['lineage', 'Lineage', Lineage],
  ['usage', 'Usage', UsageTab],
  ['changes', 'Changes', Changes],
  ['raw', 'Raw', Raw],
] as const;

type PanelTab = (typeof TABS)[number][0];

interface Sheet {
  readonly tab: PanelTab | null;
}

const useSheet = create<Sheet>(() => ({ tab: null }));

/**
 * Which tab of the panel is shown; null: the panel is closed. On a wide screen the choice is stored for all conversations. On a narrow
 * one the panel covers the conversation, and stays open until somebody closes it or opens another address.
 */
export function usePanel(): readonly [PanelTab | null, (tab: PanelTab | null) => void] {
  const isWide = useIsWide();
  const [kept, keep] = usePreference('panel');
  const sheet = useSheet();
  if (!isWide) return [sheet.tab, (tab) => useSheet.setState({ tab })];
  return [TABS.find(([name]) => name === kept)?.[0] ?? null, keep];
}

/** The sessions, the usage, the changed files and the events of a conversation. */
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
    <aside aria-label="Panel" className="flex w-90 shrink-0 flex-col border-l border-line bg-raised">
      <Content tab={tab} show={show} />
    </aside>
  );
}

function Content({ tab, show }: { tab: PanelTab; show(tab: PanelTab): void }) {
  return (
    <Tabs.Root value={tab} onValueChange={(value) => show(value as PanelTab)} className="flex min-h-0 flex-1 flex-col">
      <Tabs.List className="flex h-12 shrink-0 items-end gap-4 border-b border-line px-4" aria-label="Panel">
        {TABS.map(([name, title]) => (
          <Tabs.Tab
            key={name}
            value={name}
            className="-mb-px border-b-2 border-transparent pb-2.5 text-ui text-muted data-active:border-ink data-active:text-ink pointer-coarse:min-h-11 pointer-coarse:min-w-11"
          >
            {title}
          </Tabs.Tab>
        ))}
      </Tabs.List>
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
