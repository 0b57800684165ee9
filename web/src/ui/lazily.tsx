import { type ComponentType, use } from 'react';
import { Button } from './button.tsx';
import { ErrorNote } from './notes.tsx';

interface Lazily<P> {
  (props: P): React.ReactNode;
  /** Loads it ahead. Whether that works shows when it is needed. */
  ahead(): void;
}

/**
 * A part of the page that is loaded when it is first shown; the nearest `Suspense` stands in until then. The server may be gone at that
 * moment, or have another version of the page: then `Instead` is shown. React's own `lazy` would take down the whole page. Browsers
 * try to load a module once only, so nothing but a reload helps.
 */
export function lazily<P extends object>(
  load: () => Promise<ComponentType<P>>,
  Instead: ComponentType<P> = NotLoaded,
): Lazily<P> {
  let loading: Promise<ComponentType<P>> | null = null;
  const loaded = () => {
    loading ??= load().catch(() => Instead);
    return loading;
  };
  const Lazy = (props: P) => {
    const Part = use(loaded());
    return <Part {...props} />;
  };
  return Object.assign(Lazy, { ahead: () => void loaded() });
}

export function NotLoaded() {
  return (
    <div className="p-4">
      <ErrorNote error={new Error('This part of the page could not be loaded.')}>
        <p className="text-muted">
          The server did not answer, or it has another version of the page now. When it answers, reload the page. What
          you have written is kept.
        </p>
        <Button small onClick={() => location.reload()}>
          Reload the page
        </Button>
      </ErrorNote>
    </div>
  );
}
