import type { Lease } from 'throughline/client';
import { Link } from 'wouter';
import { useClient, useMay } from '../data/session.ts';
import { Button } from '../ui/button.tsx';
import { SESSION_ENDED, say, sayError } from '../ui/say.ts';
import { nameOf } from '../ui/state.tsx';
import { Ago } from '../ui/time.tsx';
import { Section } from './section.tsx';

interface LiveSessionsProps {
  readonly leases: readonly Lease[];
  /** How many other conversations are held and not listed. */
  readonly more: number;
  onKilled(): void;
}

/** The conversations with a lease, and the agents that run for them. */
export function LiveSessions({ leases, more, onKilled }: LiveSessionsProps) {
  const running = leases.reduce((sum, { sessions }) => sum + sessions.length, 0);
  return (
    <Section title="Live sessions">
      <p className="text-ui text-muted">
        {running === 0 ? 'None.' : `${running} running.`} A session is only a cache: ending one loses nothing, and the
        next prompt restores it.
      </p>
      <ul className="divide-y divide-line border-y border-line empty:hidden">
        {leases.map((lease) => (
          <li key={lease.conversationId} className="flex items-center gap-4 py-2 text-ui">
            <div className="grid min-w-0 flex-1 items-center gap-x-4 gap-y-0.5 sm:grid-cols-[minmax(0,1fr)_8rem_15rem]">
              <Link
                href={`/c/${lease.conversationId}`}
                className="touch min-w-0 truncate pointer-coarse:justify-start hover:underline underline-offset-2"
              >
                {nameOf(lease)}
              </Link>
              <span className="truncate text-muted">
                {lease.sessions.map(({ agent }) => agent).join(', ') || 'no agent'}
              </span>
              <span className="truncate text-facts text-faint">
                {lease.holder}
                {lease.open > 0 && ` · ${lease.open} open`}
                {lease.sessions[0] && (
                  <>
                    {' · used '}
                    <Ago at={lease.sessions[0].usedAt} />
                  </>
                )}
              </span>
            </div>
            {lease.sessions.length > 0 && <Kill lease={lease} onKilled={onKilled} />}
          </li>
        ))}
      </ul>
      {more > 0 && <p className="text-ui text-muted">{`${more.toLocaleString()} more are not listed.`}</p>}
    </Section>
  );
}

function Kill({ lease, onKilled }: { lease: Lease; onKilled(): void }) {
  const { engine } = useClient();
  const may = useMay('prompt');
  if (!may) return null;
  const kill = () =>
    engine.kill(lease.conversationId).then(() => {
      say(SESSION_ENDED, 'good');
      onKilled();
    }, sayError);
  return (
    <Button small look="danger" onClick={() => void kill()} aria-label={`Kill the live session of ${nameOf(lease)}`}>
      Kill
    </Button>
  );
}
