import { useCallback, useEffect, useState } from 'react';
import { type Sandbox, type SandboxesDiskUse, type SandboxView, ThroughlineError } from 'throughline/client';
import { Link } from 'wouter';
import { soleConversation } from '../../../src/core/sandbox/sandbox-id.ts';
import { useList } from '../data/list.ts';
import { useClient, useMay } from '../data/session.ts';
import { Button } from '../ui/button.tsx';
import { CliLine, ErrorNote, Skeleton } from '../ui/notes.tsx';
import { nameOf } from '../ui/state.tsx';
import { Ago, bytes, duration } from '../ui/time.tsx';
import { SandboxActions } from './sandbox-actions.tsx';
import { SANDBOX_STATES, sizeOf } from './sandbox-words.ts';
import { Section } from './section.tsx';

const PAGE = 20;

/** Where agents work, newest first. */
export function Sandboxes() {
  const { all, diskUse, hasMore, error, readMore, look } = useSandboxes();
  return (
    <Section title="Sandboxes">
      <p className="text-ui text-muted">
        Agents work in sandboxes. A conversation has its own, or shares a named one with other conversations of its
        owner.
      </p>
      {diskUse !== null && diskUse.sandboxes > 0 && (
        <p className="text-ui text-muted tabular-nums">
          {diskUse.bytes === 0
            ? 'No sandbox was measured yet.'
            : `${diskUse.sandboxes === 1 ? 'One sandbox takes' : `${diskUse.sandboxes} sandboxes take`} ${bytes(diskUse.bytes)} of disk space, when last measured.`}
        </p>
      )}
      {error !== null && <ErrorNote error={error} cli="throughline sandbox list" />}
      {all === null && error === null && <Skeleton lines={3} />}
      {all?.length === 0 && <p className="text-ui text-muted">No sandboxes yet.</p>}
      <ul className="divide-y divide-line border-y border-line empty:hidden">
        {(all ?? []).map((sandbox) => (
          <li key={sandbox.id}>
            <SandboxRow sandbox={sandbox} onChanged={() => look(sandbox.id)} />
          </li>
        ))}
      </ul>
      {hasMore && (
        <Button small onClick={readMore}>
          Show more
        </Button>
      )}
      <CliLine line="throughline sandbox list" />
    </Section>
  );
}

function useSandboxes() {
  const tl = useClient();
  const [state, setState] = useState<{ all: readonly Sandbox[] | null; hasMore: boolean; error: unknown }>({
    all: null,
    hasMore: false,
    error: null,
  });
  const read = useCallback(
    (before: readonly Sandbox[]) => {
      const last = before.at(-1);
      tl.sandboxes({ limit: PAGE, ...(last !== undefined && { before: last.id }) }).then(
        (page) => setState({ all: [...before, ...page], hasMore: page.length === PAGE, error: null }),
        (error) => setState((now) => ({ ...now, error })),
      );
    },
    [tl],
  );
  useEffect(() => read([]), [read]);
  const [diskUse, setDiskUse] = useState<SandboxesDiskUse | null>(null);
  // If this fails, the list is still complete, and shows the error.
  const readDiskUse = useCallback(() => tl.sandboxesDiskUse().then(setDiskUse, () => setDiskUse(null)), [tl]);
  useEffect(() => void readDiskUse(), [readDiskUse]);
  /** Reads one again. If it was removed, it leaves the list. */
  const look = async (id: string) => {
    const now = await tl
      .sandbox(id)
      .show()
      .catch((error: unknown) => {
        if (error instanceof ThroughlineError && error.code === 'not_found') return null;
        throw error;
      });
    setState(({ all, ...rest }) => ({
      ...rest,
      all: (all ?? []).flatMap((one) => (one.id !== id ? [one] : now === null ? [] : [now.sandbox])),
    }));
    await readDiskUse();
  };
  return { ...state, diskUse, look, readMore: () => read(state.all ?? []) };
}

function SandboxRow({ sandbox, onChanged }: { sandbox: Sandbox; onChanged(): Promise<void> }) {
  const [isOpened, setOpened] = useState(false);
  const { id, owner, name, state, usedAt, conversations } = sandbox;
  const own = useList((list) => list.known.get(soleConversation(id)));
  const called = name ?? (own === undefined ? null : nameOf(own));
  return (
    <details className="group text-ui" onToggle={({ currentTarget }) => setOpened(currentTarget.open)}>
      <summary className="flex cursor-pointer flex-wrap items-center gap-x-4 gap-y-1 py-2 pointer-coarse:min-h-11">
        <span className="min-w-0 flex-1 basis-48 truncate">
          {called ?? <span className="font-mono text-facts text-muted">{id}</span>}
        </span>
        <span className="text-muted">{owner}</span>
        <span className="text-facts text-faint tabular-nums">
          {`${SANDBOX_STATES[state]} · ${sizeOf(sandbox) ?? 'not measured'} · `}
          {`${conversations} ${conversations === 1 ? 'conversation' : 'conversations'} · used `}
          <Ago at={usedAt} />
        </span>
      </summary>
      {isOpened && (
        <div className="space-y-3 pb-3 pl-4">
          <Opened id={id} onMeasured={onChanged} />
          <SandboxActions sandbox={sandbox} called={called ?? id} onChanged={onChanged} />
        </div>
      )}
    </details>
  );
}

/** The disk space of one sandbox. One that was never opened has no files. */
function DiskUse({ sandbox: { disk, state }, measure }: { sandbox: Sandbox; measure(): Promise<void> }) {
  const mayMeasure = useMay('prompt');
  const [isBusy, setBusy] = useState(false);
  if (state === 'new' && disk === null) return null;
  const run = () => {
    setBusy(true);
    void measure().finally(() => setBusy(false));
  };
  return (
    <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-muted tabular-nums">
      {disk === null ? (
        'Not measured yet.'
      ) : (
        <span>
          {`Working files ${bytes(disk.work)} · agent files ${bytes(disk.state)} · session copies ${bytes(disk.copies)} · measured `}
          <Ago at={disk.at} />
        </span>
      )}
      {mayMeasure && (
        <Button small disabled={isBusy} onClick={run}>
          Measure
        </Button>
      )}
    </p>
  );
}

function Opened({ id, onMeasured }: { id: string; onMeasured(): Promise<void> }) {
  const tl = useClient();
  const known = useList((list) => list.known);
  const [{ view, error }, setState] = useState<{ view: SandboxView | null; error: unknown }>({
    view: null,
    error: null,
  });
  useEffect(() => {
    tl.sandbox(id)
      .show()
      .then(
        (view) => setState({ view, error: null }),
        (error) => setState({ view: null, error }),
      );
  }, [tl, id]);
  const measure = async () => {
    try {
      setState({ view: await tl.sandbox(id).show({ measure: true }), error: null });
      await onMeasured();
    } catch (failure) {
      setState({ view, error: failure });
    }
  };
  if (error !== null) return <ErrorNote error={error} cli={`throughline sandbox show ${id}`} />;
  if (view === null) return <Skeleton lines={2} />;
  return (
    <div className="space-y-2">
      <DiskUse sandbox={view.sandbox} measure={measure} />
      {view.setup.map(({ name, code, ms, output }) => (
        <div key={name}>
          <p className={code === 0 ? 'text-muted' : 'text-broken'}>
            {`Setup: ${name} · ${code === 0 ? 'done' : code === null ? 'not finished' : `exit code ${code}`} · ${duration(ms)}`}
          </p>
          {code !== 0 && output !== '' && (
            <pre className="overflow-x-auto font-mono text-facts whitespace-pre-wrap">{output}</pre>
          )}
        </div>
      ))}
      <ul className="space-y-1">
        {view.uses.map(({ conversationId, sessionId }) => (
          <li key={conversationId} className="flex flex-wrap gap-x-3">
            <Link href={`/c/${conversationId}`} className="touch underline underline-offset-2">
              {nameOf(known.get(conversationId) ?? { title: '', key: conversationId })}
            </Link>
            <span className="font-mono text-facts text-faint">{sessionId ?? 'no session yet'}</span>
          </li>
        ))}
      </ul>
      <CliLine line={`throughline sandbox show ${id}`} />
    </div>
  );
}
