import { useState } from 'react';
import type { Engine } from 'throughline/client';
import { quotedPath } from '../../../src/core/input/visible.ts';
import { useConversation, useConversationStore } from '../data/conversation/use-conversation.ts';
import { useClient, useMay } from '../data/session.ts';
import { type Action, useActions } from '../shell/actions.ts';
import { Button } from '../ui/button.tsx';
import { Choice, Confirm } from '../ui/dialog.tsx';
import { say } from '../ui/say.ts';
import { shellWord } from '../ui/shell-word.ts';

type AllChanges = Awaited<ReturnType<Engine['changes']>>;

interface WorktreeProps {
  readonly changes: AllChanges & { readonly worktree: NonNullable<AllChanges['worktree']> };
  onChanged(): void;
}

/** For a conversation with its own worktree: keeps or discards the changes there. */
export function Worktree(props: WorktreeProps) {
  const { branch, unmerged } = props.changes.worktree;
  const may = useMay('approve');
  const isOpen = useConversation(({ conversation }) => (conversation?.open ?? 0) > 0);
  const [asked, ask] = useState<'keep' | 'discard' | null>(null);
  const hasChanges = props.changes.files.length + props.changes.more > 0;
  const [canKeep, canDiscard] = [may && !isOpen && (hasChanges || unmerged > 0), may && !isOpen && hasChanges];
  const line = useCommand();
  const action = (id: 'keep' | 'discard', title: string, options: string): Action => {
    return { id: `worktree.${id}`, title, group: 'Conversation', cli: `${line} ${options}`, run: () => ask(id) };
  };
  useActions([
    ...(canKeep ? [action('keep', 'Keep the agent’s changes…', '--commit MESSAGE --merge')] : []),
    ...(canDiscard ? [action('discard', 'Discard the agent’s changes…', '--discard --yes')] : []),
  ]);
  return (
    <div className="space-y-2">
      <p className="text-muted">
        In a separate worktree, on the branch <code className="font-mono text-facts wrap-anywhere">{branch}</code>
        {unmerged > 0 && ` · ${unmerged} ${unmerged === 1 ? 'commit' : 'commits'} not merged`}
      </p>
      {may && isOpen && <p className="text-muted">You can keep or discard the changes when no turn is open.</p>}
      <div className="flex flex-wrap gap-2 empty:hidden">
        {canKeep && (
          <Button small look="primary" onClick={() => ask('keep')}>
            Keep…
          </Button>
        )}
        {canDiscard && (
          <Button small look="danger" onClick={() => ask('discard')}>
            Discard…
          </Button>
        )}
      </div>
      <KeepDialog {...props} hasChanges={hasChanges} open={asked === 'keep'} onClose={() => ask(null)} />
      <DiscardDialog {...props} open={asked === 'discard'} onClose={() => ask(null)} />
    </div>
  );
}

/** The equivalent command, without its options. */
function useCommand(): string {
  const { id } = useConversationStore();
  return `throughline changes ${shellWord(useConversation(({ conversation }) => conversation?.key ?? id))}`;
}

type DialogProps = WorktreeProps & { readonly open: boolean; onClose(): void };

function KeepDialog({ onChanged, hasChanges, open, onClose }: DialogProps & { readonly hasChanges: boolean }) {
  const { engine } = useClient();
  const { id } = useConversationStore();
  const line = useCommand();
  const [message, setMessage] = useState('');
  const [wantsMerge, setMerge] = useState(true);
  const commit = message.trim();
  const merge = wantsMerge || !hasChanges;
  const words = [hasChanges && `--commit ${shellWord(commit || 'MESSAGE')}`, merge && '--merge'].filter(Boolean);
  const run = async () => {
    const keeping = engine.keepChanges(id, { ...(hasChanges && { commit }), ...(merge && { merge }) });
    // If the merge fails, the commit may have been made.
    const kept = await keeping.finally(onChanged);
    const done = [kept.commit !== null && 'Committed', kept.merged !== null && 'Merged'].filter(Boolean);
    say(`${done.join(', ')}: ${kept.branch}`, 'good');
    const [large] = kept.leftOut;
    if (large !== undefined) {
      const others = kept.leftOut.length === 1 ? '' : ` and ${kept.leftOut.length - 1} more`;
      say(`Left out, because it is too large: ${quotedPath(large.path)}${others}`, 'bad');
    }
  };
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title="Keep the agent’s changes"
      cli={`${line} ${words.join(' ')}`}
      label={hasChanges ? (merge ? 'Commit and merge' : 'Commit') : 'Merge'}
      look="primary"
      disabled={hasChanges && commit === ''}
      run={run}
    >
      {hasChanges && (
        <label className="block">
          Commit message
          <input
            value={message}
            onChange={({ target }) => setMessage(target.value)}
            className="mt-1 block h-8 w-full rounded-md border border-line bg-raised px-2 pointer-coarse:h-11"
          />
        </label>
      )}
      {hasChanges && (
        <Choice label="Also merge it into the directory of the conversation" value={wantsMerge} onChange={setMerge} />
      )}
      <p className="text-muted">
        {merge
          ? 'The commits are merged into the branch that is checked out there. If there are conflicts, nothing is merged.'
          : 'The commit stays on the branch of the worktree.'}
      </p>
    </Confirm>
  );
}

function DiscardDialog({ changes, onChanged, open, onClose }: DialogProps) {
  const { engine } = useClient();
  const { id } = useConversationStore();
  const line = useCommand();
  const count = changes.files.length + changes.more;
  const run = async () => {
    await engine.discardChanges(id);
    onChanged();
    say('Discarded.', 'good');
  };
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title="Discard the agent’s changes"
      cli={`${line} --discard --yes`}
      label="Discard"
      otherwise="Keep it"
      run={run}
    >
      <p>
        The uncommitted changes in {count === 1 ? '1 file' : `${count} files`} of the worktree are deleted. This cannot
        be undone. Commits stay.
      </p>
    </Confirm>
  );
}
