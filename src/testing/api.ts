import type { Chunk, Failure } from './plan.ts';
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
  /** Absent: this way of speaking does not name its events. */
  readonly event?: string;
  readonly data: Json;
  /** How long to wait before it is sent. Only a frame with a piece of the text has it. */
  readonly waitMs?: number;
}

/** One way of speaking to a model. Pure: the server reads, waits and writes. */
export interface Api {
  readonly name: ApiName;
  /** Where it is spoken to, with the query. */
  readonly path: RegExp;
  /** Some of what others say in the body, Gemini says in the path. */
  read(body: Json, path: string): RequestBody;
  whole(reply: Reply): Json;
  /** `body`: what was asked, which may say how the answer is to be streamed. */
  frames(reply: Reply, body: Json): Frame[];
  /** What follows the frames of a complete stream, as it is written. */
  readonly streamEnd?: string;
  failure(failure: Failure): Json;
  /** How a stream says that the request was refused. Null or left out: the status says it. */
  failureFrames?(failure: Failure, id: string): Frame[] | null;
  toolUseId(id: string): string;
}

export function textOf(chunks: readonly Chunk[]): string {
  return chunks.map((chunk) => chunk.text).join('');
}

/** What a text says as JSON; the text itself, where it is none. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
