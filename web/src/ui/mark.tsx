/** The mark of Throughline: two sessions, one line. */
export function Mark({ size = 22 }: { size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 32 32"
      fill="none"
      strokeWidth="4"
      strokeLinecap="round"
      aria-hidden
      className="shrink-0"
    >
      <path d="M3 16h5M24 16h5" strokeWidth="3" className="stroke-ink" />
      <path d="M11 3v4.5c0 4.5 2.4 6.3 5 8.5" className="stroke-session-1 forced-colors:stroke-[CanvasText]" />
      <path d="M16 16c2.6 2.2 5 4 5 8.5V29" className="stroke-session-2 forced-colors:stroke-[CanvasText]" />
    </svg>
  );
}
