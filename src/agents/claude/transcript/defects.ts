import { blocksOf, type Entry, isMessage, type Line } from './entries.ts';

/** A fault of a transcript: the model may get less than the file holds, or something else. */
export interface Defect {
  readonly kind: DefectKind;
  /** The line of the file, 1, 2, 3…; 0: the file as a whole. */
  readonly line: number;
  /** Null: the line is not an entry, or has no uuid. */
  readonly uuid: string | null;
}

/**
 * True: the model would not get everything, mostly without an error. False: it gets all. The comments say what Claude 2.1.325 does, as
 * seen in test/agents/claude/transcript/transcript.test.ts.
 */
const LOSES_CONTEXT = {
  empty: true, // "No conversation found"
  corrupt_line: true, // skipped; what came before a lost message is lost with it
  torn_tail: true, // skipped like a corrupt line; the lines that Claude appends are whole again
  missing_uuid: true, // only the last message arrives
  missing_timestamp: true, // of the last message: "No conversation found"; of others: nothing happens
  broken_link: true, // nothing from before it arrives (unless the parent comes later in the file, which nobody writes)
  second_root: true, // nothing from before it arrives
  duplicate_uuid: true, // one of the two is lost, unless they are the same
  dangling_tool: true, // when the conversation continued after a call without a result, the whole answer is dropped
  open_tool: false, // the same at the end of the file: Claude adds a result that says that the call was interrupted
  time_goes_back: false, // nothing happens, and Claude's own compactions do it
  unsigned_thought: false, // arrives; the real API may refuse it
  foreign_tool_id: false, // arrives; the real API may refuse it
} as const satisfies Record<string, boolean>;

export type DefectKind = keyof typeof LOSES_CONTEXT;

export function losesContext({ kind }: Defect): boolean {
  return LOSES_CONTEXT[kind];
}

/** The defects that one line shows on its own. */
export function defectsOf({ entry, number }: Line): Defect[] {
  if (entry === null) return [{ kind: 'corrupt_line', line: number, uuid: null }];
  if (!isMessage(entry)) return [];
  const uuid = typeof entry.uuid === 'string' && entry.uuid !== '' ? entry.uuid : null;
  const kinds: DefectKind[] = uuid === null ? ['missing_uuid'] : [];
  if (Number.isNaN(timeOf(entry))) kinds.push('missing_timestamp');
  for (const block of blocksOf(entry.message)) {
    if (block.type === 'thinking' && !block.signature) kinds.push('unsigned_thought');
    if (block.type === 'tool_use' && !/^toolu_\w+$/.test(String(block.id))) kinds.push('foreign_tool_id');
  }
  return kinds.map((kind) => ({ kind, line: number, uuid }));
}

/** Milliseconds since 1970; NaN: none. */
export function timeOf({ timestamp }: Entry): number {
  return typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN;
}
