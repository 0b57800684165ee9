/** Says on stderr what is a fault of this program: in one line, or the whole of it for those who set THROUGHLINE_DEBUG. */
export function reportBug(error: unknown, where: string): void {
  process.stderr.write(bugReport(error, where, Boolean(process.env.THROUGHLINE_DEBUG)));
}

/** Whatever an agent has said may be in an error, so that nothing of it may steer a terminal. */
export function bugReport(error: unknown, where: string, whole: boolean): string {
  const detail = whole && error instanceof Error ? (error.stack ?? String(error)) : String(error).replaceAll('\n', ' ');
  return `${`throughline: a fault of this program while ${where}: ${detail}`.replaceAll(CONTROLS, '')}\n`;
}

/** All control characters but newline and tab. */
const CONTROLS = /[^\P{Cc}\n\t]/gu;
