import { useEffect, useState } from 'react';
import type { AgentInfo } from 'throughline/client';
import { useClient, useCommand, useMay } from '../data/session.ts';
import { agentName } from '../ui/agent-name.ts';
import { Button } from '../ui/button.tsx';
import { withCommands } from '../ui/command.ts';
import { CliLine, ErrorNote } from '../ui/notes.tsx';
import { commandIn } from './sign-in-command.ts';

type Check = { readonly isChecking: boolean; readonly info: AgentInfo | null; readonly error: unknown };

/** How to sign an agent in on the machine of the server, and whether that has been done. */
export function SignIn({ agent }: { agent: string }) {
  const tl = useClient();
  const isAdmin = useMay('admin');
  const [{ isChecking, info, error }, setCheck] = useState<Check>({ isChecking: isAdmin, info: null, error: null });
  const check = async () => {
    setCheck((before) => ({ ...before, isChecking: true }));
    try {
      const agents = await tl.agents({ login: true });
      setCheck({ isChecking: false, info: agents.find(({ name }) => name === agent) ?? null, error: null });
    } catch (failure) {
      setCheck({ isChecking: false, info: null, error: failure });
    }
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when it is opened
  useEffect(() => {
    if (isAdmin) void check();
  }, []);
  const name = agentName(agent);
  return (
    <section aria-label={`Sign in to ${name}`} className="space-y-2 rounded-md border border-line bg-raised p-3">
      {error !== null && <ErrorNote error={error} cli="throughline agents" />}
      {error === null && <Way name={name} info={info} isChecking={isChecking} isAdmin={isAdmin} />}
      {isAdmin && (
        <Button small disabled={isChecking} onClick={() => void check()}>
          {isChecking ? 'Checking…' : 'Check again'}
        </Button>
      )}
    </section>
  );
}

interface WayProps {
  readonly name: string;
  readonly info: AgentInfo | null;
  readonly isChecking: boolean;
  readonly isAdmin: boolean;
}

function Way({ name, info, isChecking, isAdmin }: WayProps) {
  const command = useCommand();
  const login = info?.login ?? null;
  if (isAdmin && isChecking && info === null) return <p role="status">Asking {name} whether it is signed in…</p>;
  if (login?.loggedIn) return <p role="status">{name} is signed in now. Send the prompt again.</p>;
  const hint = login?.hint ?? info?.problem ?? null;
  const line = hint === null ? null : commandIn(hint);
  return (
    <>
      <p role="status">
        {line === null
          ? `This command says how to sign ${name} in, on the machine of the server:`
          : `Run this on the machine of the server, then check again:`}
      </p>
      <CliLine line={line ?? 'throughline agents'} />
      {hint !== null && <p className="text-muted wrap-anywhere">{withCommands(hint, command)}</p>}
    </>
  );
}
