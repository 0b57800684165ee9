import { useCallback, useEffect, useRef, useState } from 'react';
import type { ServerHealth } from 'throughline/client';
import { useClient, useMay, useMe } from '../data/session.ts';
import { useActions } from '../shell/actions.ts';
import { Button } from '../ui/button.tsx';
import { CliLine, Empty, ErrorNote, Facts, Skeleton } from '../ui/notes.tsx';
import { Glyph } from '../ui/state.tsx';
import { bytes } from '../ui/time.tsx';
import { Agents } from './agents.tsx';
import { Doctor, Verify } from './doctor.tsx';
import { LiveSessions } from './live-sessions.tsx';
import { Sandboxes } from './sandboxes.tsx';
import { Section } from './section.tsx';
import { Settings } from './settings.tsx';

/** How often the health is read while the tab is visible. */
const EVERY_MS = 5_000;

/** `/health`: the state of the server, for those who operate it; agents and sandboxes, for everybody. */
export function Health() {
  const mayOperate = useMay('admin');
  const { isOperator } = useMe();
  const { health, error, look } = useHealth(mayOperate);
  useActions(
    mayOperate
      ? [
          {
            id: 'health.look',
            title: 'Refresh the health',
            group: 'Health',
            cli: 'throughline doctor',
            run: look,
          },
        ]
      : [],
  );
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <div className="mx-auto max-w-[860px] space-y-7 px-6 pt-5.5 pb-16 max-md:px-2.5">
        <header className="flex items-center justify-between">
          <h1 className="text-view font-semibold tracking-tight">Settings and health</h1>
          {mayOperate && (
            <Button small onClick={look}>
              Refresh
            </Button>
          )}
        </header>
        <Settings />
        {error !== null && <ErrorNote error={error} cli="throughline doctor" />}
        {mayOperate && health === null && error === null && <Skeleton />}
        {health !== null && <Status health={health} />}
        {health?.details?.leases && (
          <LiveSessions leases={health.details.leases} more={health.details.moreLeases ?? 0} onKilled={look} />
        )}
        <Agents />
        <Sandboxes />
        {health?.details && <Store details={health.details} />}
        {mayOperate && <Verify />}
        {mayOperate && isOperator && <Doctor />}
        {!mayOperate && (
          <Empty title="The rest of this view needs the scope admin.">This browser was signed in without it.</Empty>
        )}
      </div>
    </div>
  );
}

function useHealth(mayOperate: boolean) {
  const [state, setState] = useState<{ health: ServerHealth | null; error: unknown }>({ health: null, error: null });
  const { server } = useClient();
  const isLooking = useRef(false);
  const look = useCallback(() => {
    // One request at a time: it may wait for a server that is restarting.
    if (isLooking.current) return;
    isLooking.current = true;
    const looked = server.health().then(
      (health) => setState({ health, error: null }),
      (error) => setState(({ health }) => ({ health, error })),
    );
    void looked.finally(() => {
      isLooking.current = false;
    });
  }, [server]);
  useEffect(() => {
    if (!mayOperate) return;
    look();
    const timer = setInterval(() => document.visibilityState === 'visible' && look(), EVERY_MS);
    return () => clearInterval(timer);
  }, [look, mayOperate]);
  return { ...state, look };
}

const STATES: Readonly<Record<ServerHealth['status'], string>> = {
  ok: 'Everything works.',
  degraded: 'Some parts do not work. The others do.',
  unready: 'The server accepts no new work.',
  stopping: 'The server is stopping.',
};

function Status({ health: { status, reasons } }: { health: ServerHealth }) {
  return (
    <section aria-label="Status" className="space-y-2">
      <p className="flex items-center gap-2 font-semibold">
        <Glyph name={status === 'ok' ? 'done' : 'failed'} label="" />
        {STATES[status]}
      </p>
      {reasons.map(({ code, message, hint }) => (
        <div key={code} className="rounded-md border border-line bg-broken-soft p-3 text-ui">
          <p>
            {message} <span className="font-mono text-facts text-muted">{code}</span>
          </p>
          {hint !== undefined && <p className="text-muted">{hint}</p>}
        </div>
      ))}
    </section>
  );
}

function Store({ details: { version, store, sandboxes } }: { details: NonNullable<ServerHealth['details']> }) {
  const commits = store?.commitMs;
  const facts: readonly (readonly [string, string])[] = [
    ['Version', version],
    ['Data', store === null ? '–' : `${bytes(store.bytes)}, of which ${bytes(store.freeBytes)} are free`],
    ['Write-ahead log', store === null ? '–' : bytes(store.logBytes)],
    [
      'Commit time',
      commits ? `median ${ms(commits.p50)} · 95th percentile ${ms(commits.p95)} · maximum ${ms(commits.max)}` : '–',
    ],
    ['Sandboxes of all owners', sandboxes === null ? '–' : `${sandboxes.count} below ${sandboxes.root}`],
  ];
  return (
    <Section title="Store">
      <Facts facts={facts} className="grid-cols-[auto_1fr] gap-x-6 text-ui" />
      <CliLine line="throughline backup throughline-copy.db" />
    </Section>
  );
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}
