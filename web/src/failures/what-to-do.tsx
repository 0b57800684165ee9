import { Menu } from '@base-ui/react/menu';
import { ChevronDown } from 'lucide-react';
import { useState } from 'react';
import type { Engine, Turn } from 'throughline/client';
import { focusComposer } from '../composer/field.tsx';
import { useAgents } from '../data/agents.ts';
import { useConversationStore } from '../data/conversation/use-conversation.ts';
import { useVerbs } from '../data/conversation/verbs.ts';
import { draftOf, putDraft } from '../data/drafts/draft.ts';
import { useMay } from '../data/session.ts';
import { agentName } from '../ui/agent-name.ts';
import { Button } from '../ui/button.tsx';
import { ErrorNote } from '../ui/notes.tsx';
import { say, sayError } from '../ui/say.ts';

interface WhatToDoProps {
  readonly turn: Turn;
  /** Signing in comes first; left out: the sign-in is not what failed. */
  onSignIn?(): void;
}

/** The ways on from a prompt that was not answered, for those who may send prompts. */
export function WhatToDo({ turn, onSignIn }: WhatToDoProps) {
  const { submit, retry } = useVerbs();
  const { id } = useConversationStore();
  const may = useMay('prompt');
  const [error, setError] = useState<unknown>(null);
  if (!may) return null;
  const attempt = (work: () => Promise<unknown>) => () => {
    setError(null);
    work().catch(setError);
  };
  const send = (options: Parameters<Engine['submit']>[2]) => attempt(() => submit(turn.prompt, options))();
  const isUnrestored = turn.failure?.code === 'restore_failed' || turn.failure?.code === 'context_refuted';
  const edit = () => {
    const { text, attachments } = draftOf(id).getState();
    if (text !== '' || attachments.length > 0) return say('There is another draft already. Send or empty it first.');
    putDraft(id, turn.prompt);
    focusComposer();
  };
  return (
    <section aria-label="What to do" className="flex flex-wrap items-center gap-2">
      {onSignIn !== undefined && (
        <Button small look="primary" onClick={onSignIn}>
          Sign in again
        </Button>
      )}
      <Button small look={onSignIn === undefined ? 'primary' : 'plain'} onClick={attempt(() => retry(turn.id))}>
        Send again
      </Button>
      {isUnrestored && <Choose label="Restore with…" choices={RESTORES} onChosen={(restore) => send({ restore })} />}
      <AnotherAgent turn={turn} label="Send with another agent" />
      <Button small look="quiet" onClick={edit}>
        Edit the prompt
      </Button>
      {error !== null && (
        <div className="w-full">
          <ErrorNote error={error} cli={`throughline retry ${turn.id}`} />
        </div>
      )}
    </section>
  );
}

type Restoring = NonNullable<NonNullable<Parameters<Engine['submit']>[2]>['restore']>;

/** Each once only: the conversation keeps its own settings. */
const RESTORES: readonly { readonly words: string; readonly value: Restoring }[] = [
  { words: 'What fits, also without proof', value: { policy: 'auto', rung: null } },
  { words: 'A new session that is told the turns', value: { policy: 'auto', rung: 'transcript' } },
  { words: 'A new session without the history', value: { policy: 'off', rung: null } },
];

interface ChooseProps<T> {
  readonly label: string;
  readonly choices: readonly { readonly words: string; readonly value: T }[];
  onChosen(value: T): void;
}

function Choose<T>({ label, choices, onChosen }: ChooseProps<T>) {
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger render={<Button small />}>
        {label}
        <ChevronDown size={13} aria-hidden />
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner align="start" sideOffset={4} className="z-50">
          <Menu.Popup className="min-w-40 rounded-lg border border-line bg-raised p-1 shadow-lg outline-none">
            {choices.map(({ words, value }) => (
              <Menu.Item
                key={words}
                onClick={() => onChosen(value)}
                className="flex items-center rounded-sm px-2 py-1.5 text-ui outline-none data-highlighted:bg-hover pointer-coarse:min-h-11"
              >
                {words}
              </Menu.Item>
            ))}
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}

/** Sends the prompt of a turn to another agent. Nothing, if there is no other one. */
export function AnotherAgent({ turn, label }: { turn: Turn; label: string }) {
  const { agents } = useAgents();
  const { submit } = useVerbs();
  const others = agents.filter(({ name, problem }) => name !== turn.agent && problem === null);
  if (others.length === 0) return null;
  return (
    <Choose
      label={label}
      choices={others.map(({ name }) => ({ words: agentName(name), value: name }))}
      onChosen={(agent) => submit(turn.prompt, { agent }).catch(sayError)}
    />
  );
}
