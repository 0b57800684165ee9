import { useState } from 'react';
import { Link } from 'wouter';
import { INSTALL_COMMANDS } from '../../../src/core/public/agents.ts';
import { readAgents, useAgents } from '../data/agents.ts';
import { useClient } from '../data/session.ts';
import { Button } from '../ui/button.tsx';
import { CliLine, ErrorNote } from '../ui/notes.tsx';

/** From the demo to real work: which agents are installed, and how to install the others. */
export function OwnAgent() {
  const tl = useClient();
  const { agents, error } = useAgents();
  const [isLooking, setLooking] = useState(false);
  const own = agents.filter(({ adapter, name }) => adapter !== 'scripted' && !name.startsWith('demo'));
  const ready = own.filter(({ traits }) => traits !== null);
  const broken = own.filter(({ traits }) => traits === null);
  const names = new Set(own.map(({ name }) => name));
  const look = async () => {
    setLooking(true);
    await readAgents(tl);
    setLooking(false);
  };
  return (
    <div className="mt-2 space-y-2 text-ink">
      <h3 className="text-ui font-semibold">Now with your own agent</h3>
      {error !== null && <ErrorNote error={error} cli="throughline agents" />}
      {ready.length > 0 && (
        <p>
          Ready on this machine: {ready.map(({ name }) => name).join(', ')}.{' '}
          <Link href="~/new" className="text-ink underline decoration-control underline-offset-3">
            Start a conversation
          </Link>
        </p>
      )}
      {broken.map(({ name, problem }) => (
        <p key={name} className="text-muted">
          {problem}
        </p>
      ))}
      <Installing missing={Object.entries(INSTALL_COMMANDS).filter(([name]) => !names.has(name))} />
      <Button small disabled={isLooking} onClick={() => void look()}>
        {isLooking ? 'Looking…' : 'Detect agents again'}
      </Button>
    </div>
  );
}

/** The commands that install the missing agents. Folded if one is installed already. */
function Installing({ missing }: { missing: readonly (readonly [string, string])[] }) {
  if (missing.length === 0) return null;
  const isFirst = missing.length === Object.keys(INSTALL_COMMANDS).length;
  return (
    <details open={isFirst}>
      <summary className="cursor-pointer text-muted pointer-coarse:py-3.5">
        {isFirst ? 'Install one; no restart is needed:' : 'Install another'}
      </summary>
      <dl className="mt-1 grid items-center gap-x-3 gap-y-1 sm:grid-cols-[auto_1fr]">
        {missing.map(([name, command]) => (
          <div key={name} className="contents">
            <dt className="font-medium">{name}</dt>
            <dd className="min-w-0">
              <CliLine line={command} />
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
