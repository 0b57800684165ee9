import { KeyRound, PlugZap, Unplug } from 'lucide-react';
import type { ReactNode } from 'react';
import { checkSignIn, useLive } from '../data/session.ts';
import { Button } from '../ui/button.tsx';
import { CliLine } from '../ui/notes.tsx';
import { useStrip } from './connection.ts';

/** Above every view, while the page and the server do not hear each other. What was read stays readable below it. */
export function ConnectionStrip() {
  const live = useLive();
  const strip = useStrip();
  return (
    <div role="status" aria-live="polite" className="shrink-0 text-[13px]">
      {strip?.kind === 'signed-out' && (
        <Line colour="bg-warn-soft" icon={<KeyRound size={14} className="text-warn" aria-hidden />}>
          <span className="min-w-0 flex-1">
            You are signed out. Nothing is lost: drafts stay here. Open a new link in this browser, and go on.
          </span>
          <CliLine line="throughline link" />
          <Button small onClick={() => void checkSignIn()}>
            Try again
          </Button>
        </Line>
      )}
      {strip?.kind === 'lost' && (
        <Line colour="bg-warn-soft" icon={<Unplug size={14} className="text-warn" aria-hidden />}>
          <span className="min-w-0 flex-1">
            <strong className="font-medium">Not connected since {new Date(strip.since).toLocaleTimeString()}.</strong>{' '}
            {strip.why} What is shown is from before. It is tried again by itself.
          </span>
          <Button small onClick={() => live.wake()}>
            Try now
          </Button>
        </Line>
      )}
      {strip?.kind === 'back' && (
        <Line colour="bg-good-soft" icon={<PlugZap size={14} className="text-good" aria-hidden />}>
          Connected again. {caughtUp(strip.missed)}
        </Line>
      )}
    </div>
  );
}

function caughtUp(missed: number): string {
  if (missed === 0) return 'Nothing was missed.';
  return missed === 1 ? 'One event caught up.' : `${missed} events caught up.`;
}

function Line({ colour, icon, children }: { colour: string; icon: ReactNode; children: ReactNode }) {
  return (
    <div className={`flex min-h-9 flex-wrap items-center gap-2 border-b border-line px-4 py-1 ${colour}`}>
      {icon}
      {children}
    </div>
  );
}
