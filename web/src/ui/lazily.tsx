import { type ComponentType, use } from 'react';
import { Button } from './button.tsx';
import { ErrorNote } from './notes.tsx';

interface Lazily<P> {
  (props: P): React.ReactNode;
  /** Starts to load it. A failure shows only when it is rendered. */
  preload(): void;
}

/**
 * A component that is loaded when it is first rendered; until then the nearest `Suspense` shows its fallback. If the server cannot be
 * reached, or serves another version of the page, `Fallback` is rendered instead. With React's own `lazy`, the whole page would fail.
 * Browsers load a module only once, also after a failure, so only a reload helps.
 */
export function lazily<P extends object>(
  load: () => Promise<ComponentType<P>>,
  Fallback: ComponentType<P> = NotLoaded,
): Lazily<P> {
  let loading: Promise<ComponentType<P>> | null = null;
  const loaded = () => {
    loading ??= load().catch(() => Fallback);
    return loading;
  };
  const Lazy = (props: P) => {
    const Part = use(loaded());
    return <Part {...props} />;
  };
  return Object.assign(Lazy, { preload: () => void loaded() });
}

export function NotLoaded() {
  return (
    <div className="p-4">
      <ErrorNote error={new Error('This part of the page could not be loaded.')}>
        <p className="text-muted">
          The server did not answer, or it serves another version of the page now. When it answers, reload the page.
          Your drafts are kept.
        </p>
        <Button small onClick={() => location.reload()}>
          Reload the page
        </Button>
      </ErrorNote>
    </div>
  );
}
