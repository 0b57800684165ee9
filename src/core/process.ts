/** One process, distinguishable from a later one with the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, as the operating system counts it; opaque. */
  readonly started: string;
  /** This boot of this machine; a process of another boot is dead. */
  readonly boot: string;
  /** The pid namespace; a pid of another namespace means nothing here. */
  readonly namespace: string;
  /** The value of `MARK` in its environment and in that of everything it starts; left out: it has none. */
  readonly mark?: string;
}

/**
 * An environment variable that every program starts with; its value is unique, and names who started it. Agents may start tools in
 * process groups of their own (Claude does), which outlive the agent and its group. The mark finds them. It also finds a program
 * whose starter was killed before it could store anything: the mark is there from the first moment.
 */
export const MARK = 'THROUGHLINE_MARK';

/** Who started a program: a process, for a data home (`place`). */
export interface Starter {
  readonly place: string;
  readonly process: ProcessIdentity;
}

/** `id`: unique. */
export function formatMark(id: string, { place, process: { pid, started, boot, namespace } }: Starter): string {
  return [id, place, pid, started, boot, namespace].map(encodeURIComponent).join(':');
}

/** Null: the mark does not say who. Then it was not made by `formatMark`. */
export function starterOf(mark: string): Starter | null {
  const parts = mark.split(':').map(decoded);
  const [id, place, pid, started, boot, namespace] = parts;
  if (parts.length !== 6 || !id || !place || !/^\d+$/.test(pid ?? '') || !started || !boot || !namespace) return null;
  return { place, process: { pid: Number(pid), started, boot, namespace } };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}
