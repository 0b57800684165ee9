import type { Chunk, Plan } from './plan.ts';
import type { ApiName, Json, ModelUsage, RequestBody, ToolUse } from './request.ts';

/** An answer that is ready to be written. */
export interface Reply {
  /** Unique. */
  readonly id: string;
  readonly model: string;
  readonly chunks: readonly Chunk[];
  readonly toolUses: readonly ToolUse[];
  readonly usage: ModelUsage;
}

/** One event of a streamed answer. */
export interface Frame {
  readonly event: string;
  readonly data: Json;
  /** How long to wait before it is sent. */
  readonly waitMs?: number;
  /** Carries a piece of the text. */
  readonly delta?: boolean;
}

/** One way of speaking to a model. Pure: the server reads, waits and writes. */
export interface Api {
  readonly name: ApiName;
  /** Where it is spoken to. */
  readonly path: string;
  read(body: Json): RequestBody;
  whole(reply: Reply): Json;
  frames(reply: Reply): Frame[];
  failure(failure: NonNullable<Plan['failure']>): Json;
  /** How a stream says that the request was refused, where a status is not how it is said. Null: it is. */
  failureFrames(failure: NonNullable<Plan['failure']>, id: string): Frame[] | null;
  toolUseId(id: string): string;
}

export function textOf(chunks: readonly Chunk[]): string {
  return chunks.map((chunk) => chunk.text).join('');
}
