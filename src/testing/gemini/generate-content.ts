import { type Api, type Frame, type Reply, textOf } from '../api.ts';
import type { Failure } from '../plan.ts';
import type { Json } from '../request.ts';
import { GEMINI_PATH, readGemini } from './read.ts';

/** Gemini generateContent, as Gemini CLI uses it. */
export const geminiGenerateContent: Api = {
  name: 'gemini',
  path: GEMINI_PATH,
  read: readGemini,
  whole: (reply) => response(reply, [...texts(reply), ...calls(reply)], true),
  frames,
  failure: (failure) => ({
    error: { code: failure.status, message: inItsWords(failure), status: STATUSES[failure.status] ?? 'UNKNOWN' },
  }),
  failureFrames: () => null,
  toolUseId: (id) => `call_${id}`,
};

function inItsWords({ message, tooLong }: Failure): string {
  if (!tooLong) return message;
  return `The input token count (${tooLong.tokens}) exceeds the maximum number of tokens allowed (${tooLong.window}).`;
}

const STATUSES: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
  529: 'UNAVAILABLE',
};

const texts = ({ chunks }: Reply): Json[] => (chunks.length > 0 ? [{ text: textOf(chunks) }] : []);

const calls = ({ toolUses }: Reply): Json[] =>
  toolUses.map(({ id, name, input }) => ({ functionCall: { id, name, args: input } }));

/** Whole answers and the pieces of streamed ones have one shape; the last piece says why it ends, and what it cost. */
function response({ id, model, usage }: Reply, parts: readonly Json[], last: boolean): Json {
  const { inputTokens, outputTokens } = usage;
  const usageMetadata = {
    promptTokenCount: inputTokens,
    candidatesTokenCount: outputTokens,
    totalTokenCount: inputTokens + outputTokens,
  };
  const end = last ? { finishReason: 'STOP' } : {};
  return {
    candidates: [{ index: 0, content: { role: 'model', parts }, ...end }],
    ...(last ? { usageMetadata } : {}),
    modelVersion: model,
    responseId: id,
  };
}

function frames(reply: Reply): Frame[] {
  return [
    ...reply.chunks.map(({ text, waitMs }) => ({ data: response(reply, [{ text }], false), waitMs, delta: true })),
    ...calls(reply).map((call) => ({ data: response(reply, [call], false) })),
    // An end of its own: an answer that is broken off must not have said that it ends here.
    { data: response(reply, [{ text: '' }], true) },
  ];
}
