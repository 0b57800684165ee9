import { Menu } from '@base-ui/react/menu';
import { ChevronDown } from 'lucide-react';
import { useState } from 'react';
import type { Engine, Turn } from 'throughline/client';
import { useAgents } from '../data/agents.ts';
import { useVerbs } from '../data/conversation/verbs.ts';
import { useMay } from '../data/session.ts';
import { agentName } from '../ui/agent-name.ts';
import { Button } from '../ui/button.tsx';
import { ErrorNote } from '../ui/notes.tsx';
import { sayError } from '../ui/say.ts';

/** What to do after a failed restore, for those who may send prompts. */
export function WhatToDo({ turn }: { turn: Turn }) {
  const { submit, retry } = useVerbs();
  const may = useMay('prompt');
  const [error, setError] = useState<unknown>(null);
  if (!may) return null;
  const attempt = (work: () => Promise<unknown>) => () => {
    setError(null);
    work().catch(setError);
  };
  const send = (options: Parameters<Engine['submit']>[2]) => attempt(() => submit(turn.prompt, options));
  return (
    <section aria-label="What to do" className="space-y-2">
      <div className="flex flex-wrap gap-2">
        <Button small onClick={attempt(() => retry(turn.id))}>
          Try again
        </Button>
        <AnotherAgent turn={turn} label="Other agent" />
        <Button small onClick={send({ restore: { policy: 'auto', rung: null } })}>
          Send it even without proof
        </Button>
      </div>
      {error !== null && <ErrorNote error={error} cli={`throughline retry ${turn.id}`} />}
    </section>
  );
}

/** Sends the prompt of a turn to another agent. Nothing, if there is no other one. */
export function AnotherAgent({ turn, label }: { turn: Turn; label: string }) {
  const { agents } = useAgents();
  const { submit } = useVerbs();
  const others = agents.filter(({ name, problem }) => name !== turn.agent && problem === null);
  if (others.length === 0) return null;
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger render={<Button small />}>
        {label}
        <ChevronDown size={13} aria-hidden />
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner align="start" sideOffset={4} className="z-50">
          <Menu.Popup className="min-w-40 rounded-lg border border-line bg-raised p-1 shadow-lg outline-none">
            {others.map(({ name }) => (
              <Menu.Item
                key={name}
                onClick={() => void submit(turn.prompt, { agent: name }).catch(sayError)}
                className="rounded-sm px-2 py-1.5 text-ui outline-none data-highlighted:bg-hover pointer-coarse:min-h-11"
              >
                {agentName(name)}
              </Menu.Item>
            ))}
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}
