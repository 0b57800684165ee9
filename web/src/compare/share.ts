import type { Session, Told, TurnOutline } from 'throughline/client';

/** What of a conversation one session has. */
export interface Share {
  /** The turns that it answered itself, in their order. */
  readonly answered: readonly TurnOutline[];
  /** How many earlier turns it knows because it was told them. */
  readonly before: number;
  /** How many turns it does not know: never told, or after its watermark. */
  readonly unknown: number;
}

export function shareOf(
  { id, watermark, dropped }: Pick<Session, 'id' | 'watermark' | 'dropped'>,
  turns: readonly TurnOutline[],
): Share {
  const history = turns.filter(({ rung, imported }) => rung !== null || imported);
  const answered = history.filter(({ sessionId, imported }) => sessionId === id && !imported);
  const upTo = history.filter(({ n }) => n <= watermark).length;
  const before = Math.max(0, upTo - dropped - answered.filter(({ n }) => n <= watermark).length);
  return { answered, before, unknown: Math.max(0, history.length - before - answered.length) };
}

/** What a session was told, as one text for people. */
export function toldText({ parts }: Told): string {
  return parts
    .map((part) => {
      if (part.as === 'transcript') return part.text;
      return part.content.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n\n');
    })
    .join('\n\n');
}
