import type { Session, Told, TurnOutline } from 'throughline/client';

/** Which turns of a conversation one session has. */
export interface Share {
  /** The turns that it answered itself, in order. */
  readonly answered: readonly TurnOutline[];
  /** How many turns of other sessions were restored into it. */
  readonly restored: number;
  /** How many turns it lacks: they were dropped, or are after its watermark. */
  readonly missing: number;
}

export function shareOf(
  { id, watermark, dropped }: Pick<Session, 'id' | 'watermark' | 'dropped'>,
  turns: readonly TurnOutline[],
): Share {
  const history = turns.filter(({ rung, imported }) => rung !== null || imported);
  const answered = history.filter(({ sessionId, imported }) => sessionId === id && !imported);
  const upTo = history.filter(({ n }) => n <= watermark).length;
  const restored = Math.max(0, upTo - dropped - answered.filter(({ n }) => n <= watermark).length);
  return { answered, restored, missing: Math.max(0, history.length - restored - answered.length) };
}

/** What a session was told, as one text. */
export function toldText({ parts }: Told): string {
  return parts
    .map((part) => {
      if (part.as === 'transcript') return part.text;
      return part.content.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n\n');
    })
    .join('\n\n');
}
