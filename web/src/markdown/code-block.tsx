import { memo, type ReactNode, type RefObject, useEffect, useMemo, useRef, useState } from 'react';
import { useRest } from '../timeline/find.ts';
import { MoreButton } from '../ui/more-button.tsx';
import { CopyButton } from '../ui/notes.tsx';
import { GrowingText } from './growing-text.tsx';
import { folded, piecesOf } from './long-text.ts';

type Tree = { readonly children: readonly Node[] };
type Node =
  | { readonly type: 'text'; readonly value: string }
  | {
      readonly type: 'element';
      readonly properties: { readonly className?: unknown };
      readonly children: readonly Node[];
    };

/** Longer code is not highlighted: it would take longer than a frame. */
const LONGEST = 60_000;

export function CodeBlock({ text, language, isOpen }: { text: string; language: string; isOpen: boolean }) {
  const [name = ''] = language.split(/[\s,{]/);
  const code = useRef<HTMLElement>(null);
  const { shown, rest, showRest } = useFolded(text, isOpen);
  const tree = useHighlighted(shown, name, isOpen, code);
  return (
    <div className="group/code relative my-2.5 overflow-hidden rounded-md border border-line bg-sunken">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it */}
      <pre className="overflow-x-auto px-3 py-2.25 font-mono text-facts leading-5" tabIndex={0}>
        <code ref={code}>{tree === null ? piecesOf(shown, '\n').map(piece) : tree.children.map(coloured)}</code>
      </pre>
      {rest !== null && (
        <div className="border-t border-line px-3 py-1">
          <MoreButton onClick={showRest}>{rest}</MoreButton>
        </div>
      )}
      <div className="absolute top-1 right-1 flex items-center gap-1 rounded-sm bg-sunken pl-1.5 text-facts text-faint">
        <span>{name}</span>
        <CopyButton text={text} label="Copy the code" />
      </div>
    </div>
  );
}

/** A long block shows its first lines. One that somebody saw being written stays as it is. */
function useFolded(text: string, isOpen: boolean) {
  const [wasOpen] = useState(isOpen);
  const [isWhole, showRest] = useRest(() => text);
  const first = useMemo(() => (wasOpen || isWhole ? null : folded(text)), [text, wasOpen, isWhole]);
  return { shown: first?.text ?? text, rest: first?.rest ?? null, showRest };
}

function piece(text: string, index: number): ReactNode {
  return <Piece key={String(index)} text={text} />;
}

const Piece = memo(function Piece({ text }: { text: string }) {
  return <GrowingText className="block" text={text} />;
});

function coloured(node: Node, index: number): ReactNode {
  if (node.type === 'text') return node.value;
  const names = Array.isArray(node.properties.className) ? node.properties.className.join(' ') : '';
  return (
    <span key={String(index)} className={names}>
      {node.children.map(coloured)}
    </span>
  );
}

/**
 * Null: not highlighted, or not yet. Open blocks are not: their colours would change with every word. A block with a selection is not:
 * the browser would lose the selection.
 */
function useHighlighted(
  text: string,
  language: string,
  isOpen: boolean,
  code: RefObject<HTMLElement | null>,
): Tree | null {
  const [found, setFound] = useState<{ text: string; tree: Tree | null } | null>(null);
  const isWanted = !isOpen && language !== '' && text.length <= LONGEST;
  useEffect(() => {
    if (!isWanted) return;
    let isCurrent = true;
    let tree: Tree | null = null;
    const show = () => {
      if (tree === null || isSelectedIn(code.current)) return;
      document.removeEventListener('selectionchange', show);
      setFound({ text, tree });
    };
    document.addEventListener('selectionchange', show);
    import('./highlight.ts')
      .then(({ highlight }) => {
        if (isCurrent) tree = highlight(text, language) as Tree | null;
        show();
      })
      .catch(() => {}); // readable without colours
    return () => {
      isCurrent = false;
      document.removeEventListener('selectionchange', show);
    };
  }, [text, language, isWanted, code]);
  return found?.text === text ? found.tree : null;
}

function isSelectedIn(element: HTMLElement | null): boolean {
  const selection = document.getSelection();
  return element !== null && selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
}
