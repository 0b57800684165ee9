import { clsx } from 'clsx';
import { Check, Folder, FolderOpen, FolderPlus, type LucideIcon, Search } from 'lucide-react';
import { type KeyboardEvent, type ReactNode, useId, useState } from 'react';
import { SafeText } from '../../ui/safe-text.tsx';
import { Browse } from './browse.tsx';
import { isPath, matchingProjects, type Project, shortPath } from './projects.ts';
import type { Place } from './use-place.ts';

/** Which directory the agent works in: one that was used, any other on the server, or a new one. */
export function ProjectChooser({ place }: { place: Place }) {
  const [words, setWords] = useState('');
  const [isBrowsing, setBrowsing] = useState(false);
  const { projects, cwd, choose, roots } = place;
  const shown = matchingProjects(projects, words);
  const chooseWritten = () => {
    const found = isPath(words) ? words.trim() : shown[0]?.path;
    if (found === undefined) return;
    choose(found);
    setWords('');
  };
  return (
    <section>
      <h2 className="mb-1.5 text-facts font-semibold text-faint">Project</h2>
      <div className="divide-y divide-line overflow-hidden rounded-lg border border-line-strong bg-raised">
        <FindField words={words} onWords={setWords} onEnter={chooseWritten} />
        <ProjectList place={place} shown={shown} />
        {roots !== null && (
          <button
            type="button"
            aria-expanded={isBrowsing}
            onClick={() => setBrowsing(!isBrowsing)}
            className={clsx(OPTION, 'min-h-9 w-full text-left hover:bg-hover pointer-coarse:min-h-11')}
          >
            <FolderOpen size={15} className="text-faint" aria-hidden />
            <span className="text-muted">Browse the server’s machine …</span>
          </button>
        )}
        {isBrowsing && (
          <Browse
            from={cwd}
            onChoose={(path) => {
              choose(path);
              setBrowsing(false);
            }}
          />
        )}
      </div>
    </section>
  );
}

interface FindFieldProps {
  readonly words: string;
  onWords(words: string): void;
  onEnter(): void;
}

/** A part of the name of a used directory, or the path of any. */
function FindField({ words, onWords, onEnter }: FindFieldProps) {
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.nativeEvent.isComposing) return;
    event.preventDefault();
    onEnter();
  };
  return (
    <label className={clsx(OPTION, 'min-h-9 pointer-coarse:min-h-11')}>
      <Search size={14} className="text-faint" aria-hidden />
      <input
        aria-label="Name or path of a directory"
        placeholder="Name or path"
        value={words}
        autoComplete="off"
        className="min-w-0 self-stretch bg-transparent pointer-coarse:min-h-11 outline-none placeholder:text-faint"
        onChange={({ target }) => onWords(target.value)}
        onKeyDown={onKey}
      />
      <span className="text-facts text-faint">{isPath(words) && 'Enter'}</span>
    </label>
  );
}

function ProjectList({ place, shown }: { place: Place; shown: readonly Project[] }) {
  const { projects, cwd, choose, roots } = place;
  const group = useId();
  const home = roots?.home ?? null;
  const isOther = cwd !== null && !projects.some(({ path }) => path === cwd);
  return (
    <div role="radiogroup" aria-label="Project" className="divide-y divide-line">
      {isOther && (
        <Option group={group} isChosen icon={Folder} onChoose={() => {}}>
          <Name path={cwd} home={home} />
        </Option>
      )}
      {shown.map((project) => (
        <Option
          key={project.path}
          group={group}
          isChosen={project.path === cwd}
          icon={Folder}
          keys={`Alt ${projects.indexOf(project) + 1}`}
          onChoose={() => choose(project.path)}
        >
          <Name path={project.path} home={home} />
          <span className="block truncate text-facts text-muted">
            {project.conversations === 1 ? '1 conversation' : `${project.conversations} conversations`}
          </span>
        </Option>
      ))}
      <Option group={group} isChosen={cwd === null} icon={FolderPlus} onChoose={() => choose(null)}>
        <span className={cwd === null ? undefined : 'text-muted'}>A new, empty directory</span>
      </Option>
    </div>
  );
}

const OPTION = 'grid grid-cols-[16px_minmax(0,1fr)_auto] items-center gap-2.5 px-2.5 text-ui';

interface OptionProps {
  readonly group: string;
  readonly isChosen: boolean;
  readonly icon: LucideIcon;
  readonly keys?: string;
  readonly children: ReactNode;
  onChoose(): void;
}

function Option({ group, isChosen, icon, keys, children, onChoose }: OptionProps) {
  const Icon = isChosen ? Check : icon;
  return (
    <label
      className={clsx(
        OPTION,
        'relative min-h-11.5 py-1 has-focus-visible:outline-2 has-focus-visible:-outline-offset-2 has-focus-visible:outline-ink',
        isChosen ? 'bg-hover shadow-[inset_3px_0_0_var(--color-ink)]' : 'hover:bg-hover',
      )}
    >
      <input type="radio" name={group} checked={isChosen} onChange={onChoose} className="sr-only" />
      <Icon size={15} className={isChosen ? 'text-ink' : 'text-faint'} aria-hidden />
      <span className="min-w-0">{children}</span>
      {keys !== undefined && (
        <kbd
          aria-hidden
          className="rounded-sm border border-line-strong px-1 font-sans text-facts leading-4 text-muted pointer-coarse:hidden"
        >
          {keys}
        </kbd>
      )}
    </label>
  );
}

function Name({ path, home }: { path: string; home: string | null }) {
  const short = shortPath(path, home);
  const at = short.replace(/\/$/, '').lastIndexOf('/') + 1;
  return (
    <span className="block truncate" title={path}>
      <b className="font-semibold">
        <SafeText text={short.slice(at)} as="code" />
      </b>{' '}
      <span className="font-mono text-facts text-faint">
        <SafeText text={short} as="code" />
      </span>
    </span>
  );
}
