/** The first command that a hint names, `run "codex login", or set …`; null: it names none. */
export function commandIn(hint: string): string | null {
  return /\brun "([^"]+)"/i.exec(hint)?.[1] ?? null;
}
