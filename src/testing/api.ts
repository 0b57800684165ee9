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
  /** Left out: this API does not name its events. */
  readonly event?: string;
  readonly data: Json;
  /** How long to wait before it is sent. Only a frame with a piece of the text has it. */
  readonly waitMs?: number;
}

/** One API of a model. Pure: the server reads, waits and writes. */
export interface Api {
  readonly name: ApiName;
  /** Matches the paths of its requests, with the query. */
  readonly path: RegExp;
  /** `path`: Gemini has some values in the path that others have in the body. */
  read(body: Json, path: string): RequestBody;
  whole(reply: Reply): Json;
  /** `body`: the request, which may have options for the stream. */
  frames(reply: Reply, body: Json): Frame[];
  /** The raw text after the last frame of a complete stream. */
  readonly streamEnd?: string;
  failure(failure: Failure): Json;
  /** The stream for a refused request. Null or left out: the status shows the refusal. */
  failureFrames?(failure: Failure, id: string): Frame[] | null;
  toolUseId(id: string): string;
}

export function textOf(chunks: readonly Chunk[]): string {
  return chunks.map((chunk) => chunk.text).join('');
}

/** The parsed JSON; the text itself if it is not JSON. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
