const NAMES: Readonly<Record<string, string>> = {
  Mod: isApple() ? '⌘' : 'Ctrl',
  Shift: '⇧',
  ArrowUp: '↑',
  ArrowDown: '↓',
  Enter: '↵',
  Escape: 'Esc',
};

/** Keys to press, as `Mod+K` or `g i` (one after the other). */
export function Keys({ keys }: { keys: string }) {
  return (
    <span className="inline-flex gap-1">
      {keys.split(/[+ ]/).map((key, index) => (
        <kbd
          key={String(index)}
          className="rounded-sm border border-line bg-sunken px-1 font-sans text-facts leading-4 text-muted"
        >
          {NAMES[key] ?? key}
        </kbd>
      ))}
    </span>
  );
}

export function isApple(): boolean {
  return /Mac|iPhone|iPad/.test(navigator.platform);
}
