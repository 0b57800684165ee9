import { useState } from 'react';
import type { Sandbox } from 'throughline/client';
import { useClient, useMay } from '../data/session.ts';
import { Button } from '../ui/button.tsx';
import { Choice, Confirm } from '../ui/dialog.tsx';
import { say } from '../ui/say.ts';
import { shellWord } from '../ui/shell-word.ts';

interface SandboxActionsProps {
  readonly sandbox: Sandbox;
  /** Its name for people. */
  readonly called: string;
  onChanged(): Promise<void>;
}

/** Puts a sandbox to rest, and removes it. */
export function SandboxActions(props: SandboxActionsProps) {
  const [mayRest, mayRemove] = [useMay('prompt'), useMay('admin')];
  const [asked, ask] = useState<'rest' | 'remove' | null>(null);
  const close = () => ask(null);
  if (props.sandbox.state === 'new') return null;
  return (
    <div className="flex flex-wrap gap-2">
      {mayRest && props.sandbox.state === 'ready' && (
        <Button small onClick={() => ask('rest')}>
          Put to rest…
        </Button>
      )}
      {mayRemove && (
        <Button small look="danger" onClick={() => ask('remove')}>
          Remove…
        </Button>
      )}
      <RestDialog {...props} open={asked === 'rest'} onClose={close} />
      <RemoveDialog {...props} open={asked === 'remove'} onClose={close} />
    </div>
  );
}

type DialogProps = SandboxActionsProps & { readonly open: boolean; onClose(): void };

function RestDialog({ sandbox: { id, name }, called, onChanged, open, onClose }: DialogProps) {
  const tl = useClient();
  const run = async () => {
    await tl.sandbox(id).rest();
    await onChanged();
    say(`${called} is at rest.`, 'good');
  };
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title="Put the sandbox to rest"
      cli={`throughline sandbox rest ${shellWord(name ?? id)}`}
      label="Put to rest"
      look="primary"
      run={run}
    >
      <p>
        The idle sessions in <strong className="break-words">{called}</strong> are ended. Nothing is lost: its files
        stay, and the next turn opens it again.
      </p>
    </Confirm>
  );
}

function RemoveDialog({ sandbox: { id, name }, called, onChanged, open, onClose }: DialogProps) {
  const tl = useClient();
  const [force, setForce] = useState(false);
  const run = async () => {
    await tl.sandbox(id).remove({ force });
    await onChanged();
    say(`The sandbox of ${called} was removed.`, 'good');
  };
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title="Remove the sandbox"
      cli={`throughline sandbox rm ${shellWord(name ?? id)}${force ? ' --force' : ''}`}
      label="Remove"
      otherwise="Keep it"
      run={run}
    >
      <p>
        The sandbox of <strong className="break-words">{called}</strong> is deleted with everything in it. Its
        conversations stay. The next turn creates the sandbox again, empty. A sandbox with unsaved work is not deleted.
      </p>
      <Choice label="Also delete unsaved work" value={force} onChange={setForce} />
    </Confirm>
  );
}
