import { KeyRound, PlugZap, RefreshCw, Unplug } from 'lucide-react';
import type { ReactNode } from 'react';
import { checkSignIn, useLive } from '../data/session.ts';
import { Button } from '../ui/button.tsx';
import { CliLine } from '../ui/notes.tsx';
import { useStrip } from './connection.ts';

/** Above every view while the page has no connection to the server. What was loaded stays readable below it. */
export function ConnectionStrip() {
  const live = useLive();
  const strip = useStrip();
  return (
    <div role="status" aria-live="polite" className="shrink-0 text-ui">
      {strip?.kind === 'signed-out' && (
        <Line colour="bg-look-soft" icon={<KeyRound size={14} className="text-look" aria-hidden />}>
          <span className="min-w-0 flex-1">
            You are signed out. Your drafts are kept. To continue, open a new sign-in link in this browser.
          </span>
          <CliLine line="throughline link" />
          <Button small onClick={() => void checkSignIn()}>
            Try again
          </Button>
        </Line>
      )}
      {strip?.kind === 'outdated' && (
        <Line colour="bg-look-soft" icon={<RefreshCw size={14} className="text-look" aria-hidden />}>
          <span className="min-w-0 flex-1">
            <strong className="font-medium">This page is from another version than the server.</strong> Reload the page
            to continue. Your drafts are kept.
          </span>
          <Button small onClick={() => location.reload()}>
            Reload the page
          </Button>
        </Line>
      )}
      {strip?.kind === 'lost' && (
        <Line colour="bg-look-soft" icon={<Unplug size={14} className="text-look" aria-hidden />}>
          <span className="min-w-0 flex-1">
            <strong className="font-medium">Not connected since {new Date(strip.since).toLocaleTimeString()}.</strong>{' '}
            {strip.why} The page shows the last known state, and reconnects by itself.
          </span>
          <Button small onClick={() => live.wake()}>
            Try now
          </Button>
        </Line>
      )}
      {strip?.kind === 'back' && (
        <Line colour="bg-accent-soft" icon={<PlugZap size={14} className="text-accent" aria-hidden />}>
          Connected again. {caughtUp(strip.missed)}
        </Line>
      )}
    </div>
  );
}

function caughtUp(missed: number): string {
  if (missed === 0) return 'Nothing was missed.';
  return missed === 1 ? 'Caught up on one event.' : `Caught up on ${missed} events.`;
}

function Line({ colour, icon, children }: { colour: string; icon: ReactNode; children: ReactNode }) {
  return (
    <div className={`flex min-h-9 flex-wrap items-center gap-2 border-b border-line px-4 py-1 ${colour}`}>
      {icon}
      {children}
    </div>
  );
}
