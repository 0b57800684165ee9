import { useLayoutEffect, useRef } from 'react';

/**
 * Text that grows at its end and keeps a selection in it. React would replace the whole text, and the browser would lose the selection.
 * Here only the part that differs is replaced.
 */
export function GrowingText({ text, className }: { text: string; className?: string }) {
  const place = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const node = place.current?.firstChild;
    if (!(node instanceof Text)) return place.current?.append(text);
    const same = sameBeginning(node.data, text);
    if (same < node.length || same < text.length) node.replaceData(same, node.length - same, text.slice(same));
  }, [text]);
  return <span ref={place} className={className} />;
}

function sameBeginning(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}
