import { useState } from 'react';
import type { AgentInfo } from 'throughline/client';
import { readAgents, useAgents } from '../data/agents.ts';
import { useClient, useMay } from '../data/session.ts';
import { Button } from '../ui/button.tsx';
import { CliLine, ErrorNote, Skeleton } from '../ui/notes.tsx';
import { shellWord } from '../ui/shell-word.ts';
import { count } from '../ui/time.tsx';
import { Section } from './section.tsx';

/** Every agent, its traits, and what is wrong with it. */
export function Agents() {
  const tl = useClient();
  const { phase, error, agents } = useAgents();
  const [logins, setLogins] = useState<ReadonlyMap<string, AgentInfo['login']> | null>(null);
  const [checking, setChecking] = useState(false);
  const [failed, setFailed] = useState<unknown>(null);
  const mayCheck = useMay('admin');
  const check = async () => {
    setChecking(true);
    setFailed(null);
    try {
      setLogins(new Map((await tl.agents({ login: true })).map(({ name, login }) => [name, login])));
    } catch (reason) {
      setFailed(reason);
    } finally {
      setChecking(false);
    }
  };
  return (
    <Section title="Agents">
      {phase === 'loading' && <Skeleton />}
      {(error ?? failed) !== null && <ErrorNote error={error ?? failed} cli="throughline agents" />}
      <ul className="divide-y divide-line border-y border-line">
        {agents.map((agent) => (
          <li key={agent.name} className="py-2">
            <Agent agent={agent} login={logins?.get(agent.name) ?? null} />
          </li>
        ))}
      </ul>
      <div className="flex flex-wrap gap-2">
        <Button small onClick={() => void readAgents(tl)}>
          Detect agents again
        </Button>
        {mayCheck && (
          <Button small disabled={checking} onClick={() => void check()}>
            {checking ? 'Starting each agent…' : 'Check logins'}
          </Button>
        )}
      </div>
    </Section>
  );
}

/** The agents that `throughline agents install` can install. */
const INSTALLABLE = ['claude', 'codex'];

function Agent({ agent, login }: { agent: AgentInfo; login: AgentInfo['login'] }) {
  const { name, adapter, isDefault, where, traits, problem } = agent;
  return (
    <div className="space-y-1 text-ui">
      <p className="flex flex-wrap items-baseline gap-x-3">
        <strong className="font-medium">{name}</strong>
        {isDefault && <span className="text-facts text-accent">default</span>}
        <span className="text-facts text-muted">
          {adapter}
          {traits !== null && ` · ${traits.version}`}
        </span>
        {login !== null && <span className="text-facts">{loginWords(login)}</span>}
      </p>
      {problem !== null && <p className={traits === null ? 'text-broken' : 'text-look'}>{problem}</p>}
      {login?.hint && <p className="text-muted">{login.hint}</p>}
      {traits !== null && <p className="text-facts text-muted">{traitWords(traits).join(' · ')}</p>}
      {where !== null && <p className="truncate font-mono text-facts text-faint">{where}</p>}
      {traits === null && INSTALLABLE.includes(name) && (
        <CliLine line={`throughline agents install ${shellWord(name)}`} />
      )}
    </div>
  );
}

function loginWords({ loggedIn }: NonNullable<AgentInfo['login']>): string {
  if (loggedIn === null) return 'login unknown';
  return loggedIn ? 'logged in' : 'not logged in';
}

function traitWords(traits: NonNullable<AgentInfo['traits']>): string[] {
  return [
    ...(traits.resume ? ['can resume sessions'] : []),
    ...(traits.load ? ['can load sessions with their history'] : []),
    ...(traits.rehydrate ? ['sessions can be rebuilt in its storage'] : []),
    traits.position ? 'sessions can be checked' : 'sessions cannot be checked',
    ...(traits.noTools ? ['can replay without tools'] : []),
    ...(traits.images ? ['takes images'] : []),
    `context of ${count(traits.window)} tokens`,
  ];
}
