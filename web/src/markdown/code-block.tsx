import { memo, type ReactNode, type RefObject, useEffect, useRef, useState } from 'react';
import { CopyButton } from '../ui/notes.tsx';
import { GrowingText } from './growing-text.tsx';

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
/** An open block is rendered in pieces, so that only the last one is laid out again when it grows. */
const PIECE = 4_096;

export function CodeBlock({ text, language, isOpen }: { text: string; language: string; isOpen: boolean }) {
  const [name = ''] = language.split(/[\s,{]/);
  const code = useRef<HTMLElement>(null);
  const tree = useHighlighted(text, name, isOpen, code);
  return (
    <div className="group/code relative my-3 overflow-hidden rounded-md border border-line bg-sunken">
      <div className="flex h-7 items-center justify-between pr-0.5 pl-3 text-facts text-faint">
        <span>{name || 'text'}</span>
        <CopyButton text={text} label="Copy the code" />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it */}
      <pre className="overflow-x-auto px-3 pb-2.5 font-mono text-facts leading-[1.55]" tabIndex={0}>
        <code ref={code}>{tree === null ? pieces(text).map(piece) : tree.children.map(coloured)}</code>
      </pre>
    </div>
  );
}

function piece(text: string, index: number): ReactNode {
  return <Piece key={String(index)} text={text} />;
}

const Piece = memo(function Piece({ text }: { text: string }) {
  return <GrowingText className="block" text={text} />;
});

/** Cuts at line ends. Texts with the same beginning have the same first pieces. */
function pieces(text: string): string[] {
  const all: string[] = [];
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf('\n', from + PIECE);
    const next = end === -1 ? text.length : end + 1;
    all.push(text.slice(from, next));
    from = next;
  }
  return all;
}

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
