/** Shows the rest of a long text, in its place. */
export function MoreButton({ onClick, children }: { onClick(): void; children: string }) {
  return (
    <button
      type="button"
      data-opens
      onClick={onClick}
      className="block py-0.5 font-sans text-facts text-ink underline decoration-control underline-offset-3 pointer-coarse:min-h-11"
    >
      {children}
    </button>
  );
}
