import { hash } from 'node:crypto';
import { RESTORE_HINT, ThroughlineError } from '../../core/errors.ts';
import type { ToldPart } from '../../core/restore/told.ts';
import type { Prompt } from '../../core/turn/content.ts';
import { type ContentSource, readValue } from './content.ts';
import type { TurnRow } from './rows.ts';

/** The prompt of a turn, which went out as it was given. */
export function ownPrompt(source: ContentSource, { owner, n, prompt, prompt_refs }: TurnRow, sha256: string): ToldPart {
  return { as: 'prompt', turn: n, content: readValue<Prompt>(source, owner, prompt, prompt_refs), sha256 };
}

/** Throws `storage_damaged` when it is not what the session was told. `sha256`: of the last part. */
export function checkTold(parts: readonly ToldPart[], sha256: string, n: number): void {
  if (parts.every(isWhole) && parts.at(-1)?.sha256 === sha256) return;
  throw new ThroughlineError(
    'storage_damaged',
    `The stored text of what the session of turn ${n} was told does not match its hash.`,
    {
      hint: `Its hash differs. ${RESTORE_HINT}`,
    },
  );
}

function isWhole(part: ToldPart): boolean {
  return hash('sha256', part.as === 'transcript' ? part.text : JSON.stringify(part.content), 'hex') === part.sha256;
}
