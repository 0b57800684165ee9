import { blocksOf, type Entry, isMessage, type Line } from './entries.ts';

/** Something about a transcript that makes Claude tell the model less than it holds, or something else. */
export interface Defect {
  readonly kind: DefectKind;
  /** The line of the file, 1, 2, 3…; 0: the file as a whole. */
  readonly line: number;
  /** The entry; null: the line is none, or it has no uuid. */
  readonly uuid: string | null;
}

/**
 * True: the model would not be told everything, or not in this order, and Claude would say nothing (what was seen is beside
 * each, with 2.1.325). False: all of it arrives, and only the real API may object.
 */
export const LOSES_CONTEXT = {
  empty: true, // "No conversation found": nobody is misled, but there is nothing either
  corrupt_line: true, // the line is passed over, and with it all that came before
  torn_tail: true, // the next line is glued to it, and both are lost
  missing_uuid: true, // the message, and what came before it, is not sent
  missing_timestamp: true, // "No conversation found", or the message is not found as the last one
  broken_link: true, // nothing from before it is sent
  second_root: true, // nothing from before it is sent
  duplicate_uuid: true, // the later one takes the place of the earlier
  time_goes_back: true, // the latest time, and not the last line, is taken for the end: the tail is lost
  dangling_tool: true, // the call is dropped, or an answer is invented for it
  unsigned_thought: false,
  foreign_tool_id: false,
} as const satisfies Record<string, boolean>;

export type DefectKind = keyof typeof LOSES_CONTEXT;

export function losesContext({ kind }: Defect): boolean {
  return LOSES_CONTEXT[kind];
}

/** The defects that one line shows by itself. */
export function defectsOf({ entry, number }: Line): Defect[] {
  if (entry === null) return [{ kind: 'corrupt_line', line: number, uuid: null }];
  if (!isMessage(entry)) return [];
  const uuid = typeof entry.uuid === 'string' && entry.uuid !== '' ? entry.uuid : null;
  const kinds: DefectKind[] = uuid === null ? ['missing_uuid'] : [];
  if (Number.isNaN(timeOf(entry))) kinds.push('missing_timestamp');
  for (const block of blocksOf(entry.message)) {
    if (block.type === 'thinking' && !block.signature) kinds.push('unsigned_thought');
    if (block.type === 'tool_use' && !isToolId(block.id)) kinds.push('foreign_tool_id');
  }
  return kinds.map((kind) => ({ kind, line: number, uuid }));
}

/** Milliseconds since 1970; NaN: none. */
export function timeOf({ timestamp }: Entry): number {
  return typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN;
}

/** Also those that run on the server, and those of other places that serve the same models. */
function isToolId(id: unknown): boolean {
  return typeof id === 'string' && /^(?:toolu|srvtoolu)_[\w]+$/.test(id);
}
