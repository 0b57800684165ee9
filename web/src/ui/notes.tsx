import { clsx } from 'clsx';
import { Check, Copy, TriangleAlert } from 'lucide-react';
import { type ReactNode, useEffect, useState } from 'react';
import { describeError } from '../data/errors.ts';
import { useCommand } from '../data/session.ts';
import { IconButton } from './button.tsx';
import { printable, withCommands } from './command.ts';
import { say } from './say.ts';

/** What went wrong, what to do, and the command to try instead. */
export function ErrorNote({ error, cli, children }: { error: unknown; cli?: string; children?: ReactNode }) {
  const { message, hint, code } = describeError(error);
  const command = useCommand();
  return (
    <div role="alert" className="flex gap-2 rounded-md border border-line bg-broken-soft p-3 text-ui">
      <TriangleAlert size={16} className="mt-0.5 shrink-0 text-broken" aria-hidden />
      <div className="min-w-0 space-y-1">
        <p className="font-medium">
          {message}
          {code !== null && <span className="ml-2 font-mono text-facts text-muted">{code}</span>}
        </p>
        {hint !== null && <p className="text-muted">{withCommands(hint, command)}</p>}
        {cli !== undefined && <CliLine line={cli} />}
        {children}
      </div>
    </div>
  );
}

/** A command, as it works on the machine of the server, with a button that copies it. */
export function CliLine({ line: ours }: { line: string }) {
  const line = printable(ours, useCommand());
  return (
    <div className="flex items-center gap-1 rounded-sm border border-line bg-sunken pl-2 font-mono text-facts">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by the keyboard */}
      <code tabIndex={0} className="min-w-0 flex-1 overflow-x-auto py-1 whitespace-pre">
        {line}
      </code>
      <CopyButton text={line} label="Copy the command" />
    </div>
  );
}

export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1_500);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <IconButton label={copied ? 'Copied' : label} small onClick={() => void copyText(text, () => setCopied(true))}>
      {copied ? <Check size={14} /> : <Copy size={14} />}
    </IconButton>
  );
}

/** Copies to the clipboard, then calls back. A page of an insecure origin has no clipboard, and a browser may refuse it. */
export async function copyText(text: string, onCopied: () => void): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    onCopied();
  } catch {
    say('The browser does not allow this page to copy. Select the text instead.', 'bad');
  }
}

/** Text as it is, in a box. It can be focused, so that keys scroll it. */
export function Verbatim({ children, label, className }: { children: ReactNode; label: string; className?: string }) {
  return (
    <section
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it
      tabIndex={0}
      className={clsx(
        'overflow-auto rounded-sm border border-line bg-sunken p-2 font-mono text-facts whitespace-pre-wrap wrap-anywhere',
        className,
      )}
    >
      {children}
    </section>
  );
}

/** Names and values in two columns. */
export function Facts({ facts, className }: { facts: readonly (readonly [string, ReactNode])[]; className: string }) {
  return (
    <dl className={clsx('grid gap-y-1 tabular-nums', className)}>
      {facts.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-muted">{name}</dt>
          <dd className="wrap-anywhere">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** In the place of an empty list or view. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="mx-auto max-w-md px-6 py-16 text-center">
      <p className="font-medium">{title}</p>
      <div className="mt-1 space-y-3 text-ui text-muted">{children}</div>
    </div>
  );
}

/** Grey bars in place of what is loading. They appear after a short wait, so that a fast answer does not flicker. */
export function Skeleton({ lines = 3, afterMs = 150 }: { lines?: number; afterMs?: number }) {
  const [shown, setShown] = useState(afterMs === 0);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), afterMs);
    return () => clearTimeout(timer);
  }, [afterMs]);
  if (!shown) return null;
  const widths = ['w-3/4', 'w-full', 'w-1/2'];
  return (
    <div aria-busy="true" aria-label="Loading" role="status" className="space-y-3 p-4">
      {Array.from({ length: lines }, (_, index) => (
        <div key={String(index)} className={`h-4 rounded-sm bg-hover ${widths[index % widths.length]}`} />
      ))}
    </div>
  );
}
