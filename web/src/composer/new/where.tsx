import { clsx } from 'clsx';
import { Folder } from 'lucide-react';
import { SafeText } from '../../ui/safe-text.tsx';
import { lastPart } from './projects.ts';
import type { Place } from './use-place.ts';

/** Where the agent will work, as one sentence, and what happens to the files that are there. */
export function Where({ place }: { place: Place }) {
  const { mayChoose, cwd, repository, worktree, setWorktree } = place;
  const canHaveWorktree = repository !== null && repository.noWorktree === null;
  const name =
    cwd === null ? null : <b className="font-semibold text-ink">{<SafeText text={lastPart(cwd)} as="code" />}</b>;
  return (
    <div className="mt-3 text-ui text-muted">
      <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <p className="flex min-w-0 flex-1 basis-64 items-start gap-2">
          <Folder size={15} className="mt-0.5 shrink-0" aria-hidden />
          <span className="min-w-0 wrap-anywhere">
            {name === null && (mayChoose ? 'In a new, empty directory.' : 'In a directory of its own on the server.')}
            {name !== null && worktree && (
              <>
                In {name}: works in a worktree of its own, from <Branch of={repository} />.
              </>
            )}
            {name !== null && !worktree && (
              <>
                In {name}, in the directory itself
                {repository !== null && (
                  <>
                    , on <Branch of={repository} />
                  </>
                )}
                .
              </>
            )}
          </span>
        </p>
        {canHaveWorktree && <Switch label="Own worktree" value={worktree} onChange={setWorktree} />}
      </div>
      {name !== null && (
        <p className="mt-0.5 pl-[23px]">
          {worktree
            ? 'Your checkout stays as it is. Changes that nobody committed are not in the worktree.'
            : (repository?.noWorktree ?? 'The agent changes the files that are there.')}
        </p>
      )}
      {!mayChoose && <p className="mt-0.5 pl-[23px]">To choose another one needs the scope admin.</p>}
    </div>
  );
}

function Branch({ of }: { of: Place['repository'] }) {
  if (!of?.branch) return 'what is checked out there';
  return (
    <code className="font-mono text-facts text-ink">
      <SafeText text={of.branch} as="code" />
    </code>
  );
}

function Switch({ label, value, onChange }: { label: string; value: boolean; onChange(value: boolean): void }) {
  return (
    <button
      type="button"
      role="switch"
      aria-checked={value}
      onClick={() => onChange(!value)}
      className="flex min-h-7 items-center gap-2 font-semibold text-ink pointer-coarse:min-h-11"
    >
      <span
        aria-hidden
        className={clsx(
          'flex h-4.5 w-7.5 items-center rounded-full border-[1.5px] p-0.5',
          value ? 'justify-end border-ink bg-ink' : 'border-control',
        )}
      >
        <span className={clsx('size-[11px] rounded-full', value ? 'bg-on-ink' : 'bg-control')} />
      </span>
      {label}
    </button>
  );
}
