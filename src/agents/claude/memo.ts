import { isObject } from '../../core/content.ts';
import type { CostSoFar } from './result.ts';
import type { Seal } from './seal.ts';

/** What a session wants to be told when it is opened again. */
export interface Memo {
  readonly cost: CostSoFar | null;
  /** Of that part of the transcript of which there is a copy. */
  readonly seal: Seal | null;
}

/** Null: there is nothing to tell. */
export function renderMemo({ cost, seal }: Memo): string | null {
  return cost === null && seal === null ? null : JSON.stringify({ ...cost, ...seal });
}

/** What a session's memo says; anything else in it is none of ours. */
export function parseMemo(memo: string | null | undefined): Memo {
  const { costUsd, version, bytes, sha256 } = fieldsOf(memo);
  return {
    cost: typeof costUsd === 'number' && typeof version === 'string' ? { costUsd, version } : null,
    seal: typeof bytes === 'number' && typeof sha256 === 'string' ? { bytes, sha256 } : null,
  };
}

function fieldsOf(memo: string | null | undefined): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(memo ?? 'null');
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
