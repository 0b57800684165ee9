import * as z from 'zod';
import type { TrackedRequest as RequestValue, TrackedSession as SessionValue } from '../../ports/tracker.ts';
import { namedObject } from '../registry.ts';
import type { OperationName } from '../routes.ts';
import { Count, Id, Time } from '../values/common.ts';
import { Lock } from '../values/conversation.ts';
import { ContentBlock, Prompt } from '../values/turn.ts';
import { MEBIBYTE, type Operation } from './operation.ts';

const optional = z.exactOptional;

const TrackedRequest = namedObject('TrackedRequest', {
  requestId: z.string(),
  agentId: z.string().nullable(),
  sessionId: z.string().nullable(),
  prompt: z.array(ContentBlock).nullable(),
  status: z.enum(['pending', 'active', 'completed', 'failed']),
  createdAt: Time,
  lock: Lock.nullable(),
}) satisfies z.ZodType<RequestValue>;

const TrackedSession = namedObject('TrackedSession', {
  sessionId: z.string(),
  agentId: z.string().nullable(),
  lastActivity: Time,
  requestCount: Count,
  lock: Lock.nullable(),
}) satisfies z.ZodType<SessionValue>;

/** The name that a program has given itself: random, made when it starts, and the same in all its calls. */
const Holder = z.string().regex(/^[A-Za-z0-9._~-]{8,128}$/);
const Held = namedObject('Held', { holder: Holder });

const GivenPrompt = z.union([z.string().min(1), Prompt]);
const Reported = {
  holder: Holder,
  prompt: optional(GivenPrompt),
  reply: optional(z.string()),
  usage: optional(
    z.strictObject({
      inputTokens: optional(Count),
      outputTokens: optional(Count),
      cacheReadTokens: optional(Count),
      cacheWriteTokens: optional(Count),
      costMicros: optional(Count),
      modelCalls: optional(Count),
    }),
  ),
};

/** For programs that drive an agent themselves. */
export const tracker = {
  trackRequest: {
    summary:
      'Records a request to an agent that the caller drives itself, before it is sent, and takes the lock of the agent’s conversation ' +
      'for `holder`: a random name that the calling program has given itself. `sessionId`: the session that the agent will continue; ' +
      'null: a new one, or with `current` the agent’s current one, as it is when the lock is taken. While another request of the agent is open: 409. `waitMs`: waits for its end, for so many milliseconds at most. The ' +
      'lock is free when it has not been renewed for `expiresIn` milliseconds. The same request again returns the same.',
    scope: 'prompt',
    body: namedObject('NewTrackedRequest', {
      requestId: Id,
      agentId: Id.nullable(),
      sessionId: Id.nullable(),
      holder: Holder,
      prompt: optional(GivenPrompt),
      current: optional(z.boolean()),
      waitMs: optional(z.int().min(0).max(60_000)),
    }),
    mostBytes: 8 * MEBIBYTE,
    begins: true,
    answer: TrackedRequest,
  },
  getTrackedRequest: {
    summary: 'Returns a tracked request.',
    scope: 'read',
    answer: TrackedRequest,
  },
  updateTrackedSession: {
    summary: 'Records which session the agent has named for a request. It is the agent’s current one from now on.',
    scope: 'prompt',
    body: namedObject('NamedSession', { sessionId: Id, holder: Holder }),
    answer: TrackedRequest,
  },
  renewTracked: {
    summary:
      'Prolongs the lock of an open request, or takes it again if it has expired and nobody else has it. 409: another program has it, or ' +
      'the request has ended.',
    scope: 'prompt',
    body: Held,
    answer: TrackedRequest,
  },
  releaseTracked: {
    summary:
      'Frees the lock of a request and leaves the request open. The next request of its agent ends it as interrupted.',
    scope: 'prompt',
    body: Held,
    answer: TrackedRequest,
  },
  completeTracked: {
    summary: 'Ends a request that the agent has answered, moves the watermark of its session, and frees the lock.',
    scope: 'prompt',
    body: namedObject('CompletedRequest', Reported),
    mostBytes: 8 * MEBIBYTE,
    answer: TrackedRequest,
  },
  failTracked: {
    summary: 'Ends a request that failed, with whatever is known of it, and frees the lock. No watermark moves.',
    scope: 'prompt',
    body: namedObject('FailedRequest', { ...Reported, reason: optional(z.string()) }),
    mostBytes: 8 * MEBIBYTE,
    answer: TrackedRequest,
  },
  getTrackedAgent: {
    summary:
      'Returns the current session of a tracked agent (null: none yet), all its sessions, oldest first, and who holds its lock.',
    scope: 'read',
    answer: namedObject('TrackedAgent', {
      agentId: z.string(),
      sessionId: z.string().nullable(),
      sessions: z.array(z.string()),
      lock: Lock.nullable(),
    }),
  },
  getTrackedSession: {
    summary: 'Returns a session that a tracked agent has used.',
    scope: 'read',
    answer: TrackedSession,
  },
} as const satisfies Partial<Record<OperationName, Operation>>;
