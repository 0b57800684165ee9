import { ShieldAlert, ShieldCheck } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useLocation } from 'wouter';
import type { ChainCheck } from '../../../src/core/event.ts';
import { useConversation } from '../data/conversation/use-conversation.ts';
import { useVerbs } from '../data/conversation/verbs.ts';
import { Choice, Confirm, Dialog } from '../ui/dialog.tsx';
import { CliLine, CopyButton, ErrorNote, Skeleton } from '../ui/notes.tsx';
import { say, sayError } from '../ui/say.ts';
import { shellWord } from '../ui/shell-word.ts';
import { nameOf } from '../ui/state.tsx';
import { chainVerdict } from './standing.ts';

/** Replaces the title while it is edited. */
export function TitleField({ onDone }: { onDone(): void }) {
  const { rename } = useVerbs();
  const title = useConversation(({ conversation }) => conversation?.title ?? '');
  const [text, setText] = useState(title);
  const save = () => {
    onDone();
    const wanted = text.trim();
    if (wanted === '' || wanted === title) return;
    rename(wanted).catch(sayError);
  };
  return (
    <input
      aria-label="Title"
      className="-ml-2 block min-h-6 w-full min-w-0 rounded-md border border-ink bg-raised px-2 text-said leading-5 font-semibold outline-none pointer-coarse:min-h-11"
      value={text}
      maxLength={500}
      // biome-ignore lint/a11y/noAutofocus: somebody has just asked to edit it
      autoFocus
      onFocus={({ target }) => target.select()}
      onChange={({ target }) => setText(target.value)}
      onBlur={save}
      onKeyDown={(event) => {
        if (event.nativeEvent.isComposing || event.keyCode === 229) return;
        if (event.key === 'Enter') save();
        if (event.key === 'Escape') onDone();
      }}
    />
  );
}

export function VerifyDialog({ onClose }: { onClose(): void }) {
  return (
    <Dialog open onClose={onClose} title="Verify">
      <Verified />
    </Dialog>
  );
}

function Verified() {
  const { verify } = useVerbs();
  const name = useConversation(({ conversation }) => conversation?.key ?? conversation?.id ?? '');
  const [check, setCheck] = useState<ChainCheck | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    verify().then(setCheck, setError);
  }, [verify]);
  if (error !== null) return <ErrorNote error={error} cli={`throughline verify ${shellWord(name)}`} />;
  if (check === null) return <Skeleton />;
  const { isIntact, text } = chainVerdict(check);
  const Icon = isIntact ? ShieldCheck : ShieldAlert;
  return (
    <div className="space-y-3 p-4 text-ui">
      <p className="flex items-start gap-2">
        <Icon size={18} className={isIntact ? 'shrink-0 text-accent' : 'shrink-0 text-broken'} aria-hidden />
        {text}
      </p>
      <p className="text-muted">
        Keep a copy of this head somewhere else. A later check against it also detects a chain that was recomputed.
      </p>
      <div className="flex items-center gap-1 rounded-sm border border-line bg-sunken pl-2 font-mono text-facts">
        <code className="min-w-0 flex-1 py-1 break-all">{check.head}</code>
        <CopyButton text={check.head} label="Copy the head" />
      </div>
      <CliLine line={`throughline verify ${shellWord(name)} --head ${check.head}`} />
    </div>
  );
}

export function EraseDialog({ onClose }: { onClose(): void }) {
  const { erase } = useVerbs();
  const conversation = useConversation((state) => state.conversation);
  const [sandbox, setSandbox] = useState(false);
  const [wantsDiscard, setDiscard] = useState(false);
  const hasWorktree = sandbox && conversation?.worktree === true;
  const discard = hasWorktree && wantsDiscard;
  const options = [sandbox && ' --sandbox', discard && ' --discard'].filter(Boolean).join('');
  const [, go] = useLocation();
  const name = conversation === null ? 'this conversation' : nameOf(conversation, 'this conversation');
  const run = async () => {
    const { remains } = await erase({ sandbox, discard });
    go('~/');
    const left = remains.map(({ where }) => where).join(', ');
    say(left === '' ? 'Erased.' : `Erased. What remains: ${left}`, 'good');
  };
  return (
    <Confirm
      open
      onClose={onClose}
      title="Erase the conversation"
      cli={`throughline erase ${shellWord(conversation?.key ?? conversation?.id ?? '')}${options} --yes`}
      label="Erase"
      otherwise="Keep it"
      run={run}
    >
      <p>
        Everything that was said in <strong className="break-words">{name}</strong> is deleted for good: prompts,
        answers, receipts, copies of sessions. Erasing cannot be undone.
      </p>
      <Choice label="Also delete its own sandbox with all files in it" value={sandbox} onChange={setSandbox} />
      {hasWorktree && (
        <Choice label="Also discard uncommitted changes in its worktree" value={wantsDiscard} onChange={setDiscard} />
      )}
    </Confirm>
  );
}
