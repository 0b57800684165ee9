import { type ReactNode, useEffect, useMemo, useState } from 'react';
import { type Engine, ThroughlineError } from 'throughline/client';
import { quotedPath } from '../../../src/core/input/visible.ts';
import { useConversation, useConversationStore } from '../data/conversation/use-conversation.ts';
import { useClient, useMay } from '../data/session.ts';
import { DiffView } from '../diff/diff-view.tsx';
import { diffOfPatch } from '../diff/model.ts';
import { Button } from '../ui/button.tsx';
import { CliLine, Empty, ErrorNote, Skeleton } from '../ui/notes.tsx';
import { SafeText } from '../ui/safe-text.tsx';
import { shellWord } from '../ui/shell-word.ts';
import { Worktree } from './worktree.tsx';

type AllChanges = Awaited<ReturnType<Engine['changes']>>;
type ChangedFile = AllChanges['files'][number];

/** What the agent has changed in its directory since the last commit, by file. Read again after every turn. */
export function Changes() {
  const { id } = useConversationStore();
  const conversation = useConversation((state) => state.conversation);
  const may = useMay('prompt');
  const { changes, error, look } = useChanges(id, may, conversation?.head ?? 0);
  if (!may) return <Empty title="Changes need the scope prompt.">This browser was signed in without it.</Empty>;
  if (error instanceof ThroughlineError && error.code === 'not_found') {
    return <Empty title="There is no git repository here.">{error.message}</Empty>;
  }
  if (changes === null) return error === null ? <Skeleton lines={6} /> : <ErrorNote error={error} />;
  return (
    <div className="space-y-2 p-3 text-ui">
      <div className="flex items-center justify-between gap-2">
        <p className="text-muted">
          {words(changes)}
          {changes.head !== null && (
            <>
              {' since '}
              <code className="font-mono text-facts">{changes.head.slice(0, 8)}</code>
            </>
          )}
        </p>
        <Button small onClick={look}>
          Refresh
        </Button>
      </div>
      {changes.worktree !== undefined && (
        <Worktree changes={{ ...changes, worktree: changes.worktree }} onChanged={look} />
      )}
      {error !== null && <ErrorNote error={error} />}
      <ul className="divide-y divide-line border-y border-line empty:hidden">
        {changes.files.map((file) => (
          <li key={file.path}>
            <File file={file} />
          </li>
        ))}
      </ul>
      {changes.more > 0 && <p className="text-muted">{changes.more} more files have changed.</p>}
      <CliLine line={`throughline changes ${shellWord(conversation?.key ?? id)}`} />
    </div>
  );
}

function words({ files, more }: AllChanges): string {
  const count = files.length + more;
  if (count === 0) return 'Nothing has changed';
  return count === 1 ? '1 file has changed' : `${count} files have changed`;
}

function useChanges(id: string, may: boolean, head: number) {
  const { engine } = useClient();
  const [asked, ask] = useState(0);
  const [state, setState] = useState<{ changes: AllChanges | null; error: unknown }>({ changes: null, error: null });
  // biome-ignore lint/correctness/useExhaustiveDependencies: `head` and `asked` trigger a new read
  useEffect(() => {
    if (!may) return;
    let isCurrent = true;
    engine.changes(id).then(
      (changes) => isCurrent && setState({ changes, error: null }),
      (error) => isCurrent && setState(({ changes }) => ({ changes, error })),
    );
    return () => {
      isCurrent = false;
    };
  }, [engine, id, may, head, asked]);
  return { ...state, look: () => ask(asked + 1) };
}

function File({ file: { path: raw, change, added, removed, patch } }: { file: ChangedFile }) {
  const path = quotedPath(raw);
  const name = (
    <span className="flex min-w-0 flex-1 items-baseline gap-2">
      <span className="min-w-0 flex-1 truncate font-mono text-facts" title={path}>
        <SafeText text={path} as="code" />
      </span>
      <span className="text-facts text-muted">{change === 'untracked' ? 'new' : change}</span>
      {added !== null && <span className="text-facts text-accent tabular-nums">+{added}</span>}
      {removed !== null && <span className="text-facts text-broken tabular-nums">−{removed}</span>}
    </span>
  );
  if (patch === null) {
    return (
      <div className="flex items-center gap-2 py-1.5 pl-4">
        {name}
        <span className="text-facts text-faint">too large, or not text</span>
      </div>
    );
  }
  return (
    <Folded summary={name}>
      <Patch patch={patch} path={path} />
    </Folded>
  );
}

/** The content is rendered only when it is opened: there may be hundreds of files. */
function Folded({ summary, children }: { summary: ReactNode; children: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="flex items-center gap-2 py-1.5 before:w-2 before:text-faint before:content-['›'] pointer-coarse:min-h-11">
        {summary}
      </summary>
      {isOpen && children}
    </details>
  );
}

function Patch({ patch, path }: { patch: string; path: string }) {
  const diff = useMemo(() => diffOfPatch(patch), [patch]);
  return (
    <div className="mb-2">
      <DiffView path={path} diff={diff} isBare />
    </div>
  );
}
