import { useEffect, useState } from 'react';
import type { Conversation } from 'throughline/client';
import { Link } from 'wouter';
import { arrange } from '../data/list.ts';
import { useClient, useMay } from '../data/session.ts';
import { Button } from '../ui/button.tsx';
import { Empty, ErrorNote, Skeleton } from '../ui/notes.tsx';
import { sayError } from '../ui/say.ts';
import { nameOf } from '../ui/state.tsx';
import { Ago } from '../ui/time.tsx';
import { projectOf } from './groups.ts';

const PAGE = 100;

/** `/put-away`: the conversations that the lists leave out. */
export function PutAway() {
  const tl = useClient();
  const may = useMay('prompt');
  const [rows, setRows] = useState<readonly Conversation[] | null>(null);
  const [hasMore, setMore] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const read = (known: readonly Conversation[]) => {
    const last = known.at(-1);
    const before = last === undefined ? {} : { before: { updatedAt: last.updatedAt, id: last.id } };
    tl.conversations({ putAway: true, limit: PAGE, ...before }).then((page) => {
      setRows([...known, ...page]);
      setMore(page.length === PAGE);
    }, setError);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: read once
  useEffect(() => read([]), [tl]);
  const bringBack = ({ id }: Conversation) =>
    void arrange(tl, id, { putAway: false }).then(
      () => setRows((known) => known?.filter((row) => row.id !== id) ?? null),
      sayError,
    );
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <div className="mx-auto w-full max-w-[860px] px-6 pt-5.5 pb-16 max-md:px-2.5">
        <h1 className="text-view font-semibold tracking-tight">Put away</h1>
        <p className="mb-3 text-muted">Lists leave these out. Nothing else has changed: a prompt brings one back.</p>
        {error !== null && <ErrorNote error={error} cli="throughline list --put-away" />}
        {rows === null && error === null && <Skeleton lines={6} />}
        {rows?.length === 0 && <Empty title="Nothing is put away." />}
        <ul
          aria-label="Conversations that were put away"
          className="divide-y divide-line overflow-hidden rounded-lg border border-line-strong bg-raised empty:hidden"
        >
          {rows?.map((row) => (
            <li key={row.id} className="flex items-center gap-3 px-3 py-1">
              <Link
                href={`/c/${row.id}`}
                className="min-w-0 flex-1 truncate -outline-offset-2 hover:underline pointer-coarse:leading-[2.75rem]"
              >
                {nameOf(row)} <span className="text-faint">{projectOf(row)?.name}</span>
              </Link>
              <Ago at={row.updatedAt} className="text-facts text-faint tabular-nums" />
              {may && (
                <Button small look="quiet" onClick={() => bringBack(row)}>
                  Bring back
                </Button>
              )}
            </li>
          ))}
        </ul>
        {hasMore && (
          <Button className="mt-3" onClick={() => read(rows ?? [])}>
            Show older
          </Button>
        )}
      </div>
    </div>
  );
}
