import { useEffect, useState } from 'react';
import type { Conversation } from 'throughline/client';
import { Link } from 'wouter';
import type { Beginning } from '../../data/conversation/create.ts';
import { useList } from '../../data/list.ts';
import { useClient } from '../../data/session.ts';
import { CliLine } from '../../ui/notes.tsx';
import { nameOf } from '../../ui/state.tsx';
import { Options, type OptionsProps } from '../choices/options-picker.tsx';

interface MoreProps {
  readonly from: Beginning;
  readonly choices: OptionsProps;
  /** The conversation that has the key already; null: none is known. */
  readonly taken: Conversation | null;
  readonly cli: string;
  onChange(field: { readonly title: string } | { readonly key: string }): void;
}

/** What most conversations do not need. */
export function More({ from, choices, taken, cli, onChange }: MoreProps) {
  return (
    <section aria-label="More" className="mt-3 space-y-3 rounded-lg border border-line-strong bg-raised p-4 text-ui">
      <TextField
        name="title"
        label="Title"
        about="Default: the first line of the prompt."
        value={from.title}
        onValue={(title) => onChange({ title })}
      />
      <TextField
        name="key"
        label="Key"
        about="Its name on the command line and in programs."
        value={from.key}
        onValue={(key) => onChange({ key })}
      />
      {taken !== null && <Taken by={taken} />}
      <Options {...choices} />
      <CliLine line={cli} />
    </section>
  );
}

/** That the key exists, and the way to its conversation. */
export function Taken({ by }: { by: Conversation }) {
  return (
    <p
      role="alert"
      className="rounded-md border border-look-line bg-look-soft px-3 py-2 text-ui text-look wrap-anywhere"
    >
      The key “{by.key}” exists: it is that of{' '}
      <Link href={`/c/${by.id}`} className="font-semibold underline underline-offset-3">
        {nameOf(by)}
      </Link>
      . Nothing was sent. Write to that conversation, or choose another key.
    </p>
  );
}

interface TextFieldProps {
  readonly name: string;
  readonly label: string;
  readonly about: string;
  readonly value: string;
  onValue(value: string): void;
}

function TextField({ name, label, about, value, onValue }: TextFieldProps) {
  return (
    <div className="grid gap-x-2 gap-y-0.5 sm:grid-cols-[9rem_1fr]">
      <label htmlFor={`new-${name}`} className="text-muted sm:pt-1.5">
        {label}
      </label>
      <div>
        <input
          id={`new-${name}`}
          aria-describedby={`new-${name}-about`}
          className="h-8 w-full rounded-md border border-control bg-raised px-2 pointer-coarse:h-11"
          value={value}
          autoComplete="off"
          onChange={({ target }) => onValue(target.value)}
        />
        <p id={`new-${name}-about`} className="text-facts text-faint">
          {about}
        </p>
      </div>
    </div>
  );
}

/** A key is looked up after this pause in typing. */
const QUIET_MS = 300;

/** The conversation that has the key, found while somebody types; and a function that looks it up now. */
export function useTaken(key: string): readonly [Conversation | null, () => Promise<Conversation | null>] {
  const tl = useClient();
  const wanted = key.trim();
  const [found, setFound] = useState<{ key: string; by: Conversation | null }>({ key: '', by: null });
  const known = useList(({ known }) =>
    wanted === '' ? undefined : [...known.values()].find((one) => one.key === wanted),
  );
  const by = known ?? (found.key === wanted ? found.by : null);
  const lookUp = async () => {
    if (wanted === '' || by !== null) return by;
    // Not found is what one hopes for. After any other failure, creating the conversation reports it.
    const read = await tl.engine.conversation(wanted).catch(() => null);
    // An id names a conversation, too.
    const taken = read?.key === wanted ? read : null;
    setFound({ key: wanted, by: taken });
    return taken;
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another key is looked up
  useEffect(() => {
    if (wanted === '' || found.key === wanted) return;
    const timer = window.setTimeout(() => void lookUp(), QUIET_MS);
    return () => window.clearTimeout(timer);
  }, [wanted]);
  return [by, lookUp];
}
