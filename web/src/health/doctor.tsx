import { useMemo, useState } from 'react';
import type { Finding } from 'throughline/client';
import { chainVerdict } from '../conversation/standing.ts';
import { useList } from '../data/list.ts';
import { useClient } from '../data/session.ts';
import { Button } from '../ui/button.tsx';
import { CliLine, ErrorNote } from '../ui/notes.tsx';
import { shellWord } from '../ui/shell-word.ts';
import { nameOf } from '../ui/state.tsx';
import { Section } from './section.tsx';

/** A request that a button starts, with its progress and its result. */
function useAsked<T>(ask: () => Promise<T>) {
  const [state, setState] = useState<{ value: T | null; error: unknown; isBusy: boolean }>({
    value: null,
    error: null,
    isBusy: false,
  });
  const start = () => {
    setState(({ value }) => ({ value, error: null, isBusy: true }));
    ask().then(
      (value) => setState({ value, error: null, isBusy: false }),
      (error) => setState({ value: null, error, isBusy: false }),
    );
  };
  return { ...state, start };
}

export function Doctor() {
  const { server } = useClient();
  const { value: findings, error, isBusy, start } = useAsked(() => server.examine());
  return (
    <Section title="Doctor">
      <p className="text-ui text-muted">
        Checks the whole store for damage, lost data and leftovers of crashes. It changes nothing.
      </p>
      <Button small disabled={isBusy} onClick={start}>
        {isBusy ? 'Examining…' : 'Examine'}
      </Button>
      {error !== null && <ErrorNote error={error} cli="throughline doctor" />}
      {findings?.length === 0 && <p className="text-ui text-accent">No problems found.</p>}
      <ul className="space-y-2">
        {(findings ?? []).map((finding) => (
          <li key={`${finding.check} ${finding.subject}`}>
            <Found finding={finding} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Found({ finding: { subject, problem, remedy, repairedBy, isNote } }: { finding: Finding }) {
  return (
    <div className="space-y-1 border-l-2 border-line pl-3 text-ui">
      <p>
        <span className={isNote ? 'text-muted' : 'text-broken'}>{isNote ? 'Note' : 'Problem'}</span>
        {': '}
        {problem} <span className="font-mono text-facts text-faint wrap-anywhere">{subject}</span>
      </p>
      {remedy !== null && <p className="text-muted">{remedy}</p>}
      {repairedBy !== null && <CliLine line={`throughline doctor ${shellWord(repairedBy)}`} />}
    </div>
  );
}

/** Checks the hash chain over the events of one conversation. */
export function Verify() {
  const known = useList((state) => state.known);
  const rows = useMemo(() => [...known.values()].toSorted((a, b) => b.updatedAt - a.updatedAt), [known]);
  const [chosen, choose] = useState<string | null>(null);
  const newest = rows[0]?.id ?? null;
  // It stays chosen when another conversation becomes the newest.
  if (chosen === null && newest !== null) choose(newest);
  const id = chosen ?? newest;
  if (id === null) return null;
  return (
    <Section title="Verify">
      <p className="text-ui text-muted">
        Checks that no event of a conversation was changed. Each event has a hash that covers all events before it.
      </p>
      <div className="flex flex-wrap gap-2">
        <select
          aria-label="Conversation"
          value={id}
          onChange={(event) => choose(event.target.value)}
          className="h-8 min-w-0 flex-1 pointer-coarse:h-11 rounded-md border border-line bg-raised px-2 text-ui sm:flex-none"
        >
          {rows.map((row) => (
            <option key={row.id} value={row.id}>
              {nameOf(row)}
            </option>
          ))}
        </select>
        {/* The key drops the result when another conversation is chosen. */}
        <Check key={id} id={id} />
      </div>
    </Section>
  );
}

function Check({ id }: { id: string }) {
  const { engine } = useClient();
  const { value, error, isBusy, start } = useAsked(() => engine.verify(id));
  const verdict = value && chainVerdict(value);
  return (
    <>
      <Button small disabled={isBusy} onClick={start}>
        {isBusy ? 'Checking…' : 'Verify'}
      </Button>
      <div className="w-full">
        {error !== null && <ErrorNote error={error} cli={`throughline verify ${shellWord(id)}`} />}
        {verdict !== null && (
          <p className={`text-ui ${verdict.isIntact ? 'text-accent' : 'text-broken'}`}>
            {verdict.text} <span className="font-mono text-facts text-muted wrap-anywhere">{value?.head}</span>
          </p>
        )}
      </div>
    </>
  );
}
