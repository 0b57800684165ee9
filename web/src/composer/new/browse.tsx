import { CornerLeftUp, Folder, FolderGit2 } from 'lucide-react';
import { useEffect, useState } from 'react';
import type { Directories } from 'throughline/client';
import { useClient } from '../../data/session.ts';
import { Button } from '../../ui/button.tsx';
import { Choice } from '../../ui/dialog.tsx';
import { ErrorNote } from '../../ui/notes.tsx';
import { SafeText } from '../../ui/safe-text.tsx';
import { isBelow, shortPath } from './projects.ts';

/** The directories of the server's machine below the roots of its settings. `from`: where to begin; null: in the first root. */
export function Browse({ from, onChoose }: { from: string | null; onChoose(path: string): void }) {
  const tl = useClient();
  const [path, go] = useState<string | null>(null);
  const [hidden, setHidden] = useState(false);
  const [found, setFound] = useState<Directories | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    let isCurrent = true;
    tl.directories({ ...(path !== null && { path }), ...(hidden && { hidden }) }).then(
      (read) => {
        if (!isCurrent) return;
        setError(null);
        setFound(read);
        // The first answer says where one may begin.
        if (path === null && from !== null && from !== read.path && isBelow(from, read.roots)) go(from);
      },
      (failure) => isCurrent && setError(failure),
    );
    return () => {
      isCurrent = false;
    };
  }, [tl, path, hidden, from]);
  return (
    <section aria-label="Directories" className="text-ui">
      {error !== null && <ErrorNote error={error} />}
      {found !== null && (
        <>
          <Entries found={found} onGo={go} />
          <div className="flex flex-wrap items-center gap-x-4 gap-y-1 border-t border-line bg-sunken px-2 py-1.5">
            <Button small look="primary" className="min-w-0" onClick={() => onChoose(found.path)}>
              <span className="shrink-0">Use</span>
              <span className="truncate font-mono text-facts">
                <SafeText text={shortPath(found.path, found.home)} as="code" />
              </span>
            </Button>
            <Choice label="Hidden ones" value={hidden} onChange={setHidden} />
          </div>
        </>
      )}
    </section>
  );
}

const ROW =
  'flex min-h-8 w-full items-center gap-2.5 px-2.5 text-left enabled:hover:bg-hover disabled:text-faint pointer-coarse:min-h-11';

function Entries({ found, onGo }: { found: Directories; onGo(path: string): void }) {
  const { above, roots, path, home, directories, more } = found;
  const others = above === null ? roots.filter((root) => root !== path) : [];
  return (
    <ul className="max-h-64 overflow-y-auto" aria-label={`Directories in ${path}`}>
      {above !== null && (
        <li>
          <button type="button" className={ROW} onClick={() => onGo(above)}>
            <CornerLeftUp size={14} className="shrink-0 text-faint" aria-hidden />
            Up to <SafeText text={shortPath(above, home)} as="code" />
          </button>
        </li>
      )}
      {others.map((root) => (
        <li key={root}>
          <button type="button" className={ROW} onClick={() => onGo(root)}>
            <Folder size={14} className="shrink-0 text-faint" aria-hidden />
            <SafeText text={shortPath(root, home)} as="code" />
          </button>
        </li>
      ))}
      {directories.map((one) => {
        const Icon = one.repository ? FolderGit2 : Folder;
        return (
          <li key={one.path}>
            <button type="button" className={ROW} disabled={one.outside} onClick={() => onGo(one.path)}>
              <Icon size={14} className="shrink-0 text-faint" aria-hidden />
              <span className="min-w-0 truncate">
                <SafeText text={one.name} as="code" />
                {one.link !== null && (
                  <span className="text-faint">
                    {' → '}
                    <SafeText text={one.link} as="code" />
                  </span>
                )}
              </span>
              {one.repository && <span className="sr-only">, a git repository</span>}
              {one.outside && <span className="shrink-0 text-facts">not below a root</span>}
            </button>
          </li>
        );
      })}
      {directories.length === 0 && <li className="px-2.5 py-1.5 text-faint">No directories in it.</li>}
      {more && <li className="px-2.5 py-1.5 text-faint">There are more. Type the path of one that is not listed.</li>}
    </ul>
  );
}
