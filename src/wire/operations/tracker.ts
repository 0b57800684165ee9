import * as z from 'zod';
import type { TrackedRequest as RequestValue, TrackedSession as SessionValue } from '../../ports/tracker.ts';
import { namedObject } from '../registry.ts';
import type { OperationName } from '../routes.ts';
import { Count, Id, Time } from '../values/common.ts';
import { Lock } from '../values/conversation.ts';
import { ContentBlock, PromptInput } from '../values/turn.ts';
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

/** The name of the calling program: random, made when it starts, and the same in all its calls. */
const Holder = z
  .string()
  .regex(/^[A-Za-z0-9._~-]{8,128}$/, { error: 'must have 8 to 128 characters: letters of a to z, digits and . _ ~ -' });
const Held = namedObject('Held', { holder: Holder });

const Reported = {
  holder: Holder,
  prompt: optional(PromptInput),
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
      'for `holder`: a random name that the calling program chose for itself. `sessionId`: the session that the agent will continue; ' +
      'null: a new one, or with `current` the agent’s current one, as it is when the lock is taken. A request with another session than the ' +
      'current one is pending until the agent names a session. 409 while another request of the agent is open. `waitMs`: waits for its end, for so many milliseconds at most. The lock expires when it was not renewed for `expiresIn` ' +
      'milliseconds. Repeating the same request returns the same.',
    scope: 'prompt',
    body: namedObject('NewTrackedRequest', {
      requestId: Id,
      agentId: Id.nullable(),
      sessionId: Id.nullable(),
      holder: Holder,
      prompt: optional(PromptInput),
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
    summary:
      'Records which session the agent reported for a request. It is the agent’s current one from now on; the one before is dormant.',
    scope: 'prompt',
    body: namedObject('NamedSession', { sessionId: Id, holder: Holder }),
    answer: TrackedRequest,
  },
  renewTracked: {
    summary:
      'Renews the lock of an open request, or takes it again if it has expired and is free. 409: another program has it, or ' +
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
    summary:
      'Ends a request that failed, with what the caller knows of it, and frees the lock. The watermark does not move.',
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
      sessionIds: z.array(z.string()),
      lock: Lock.nullable(),
    }),
  },
  getTrackedSession: {
    summary: 'Returns a session that a tracked agent has used.',
    scope: 'read',
    answer: TrackedSession,
  },
} as const satisfies Partial<Record<OperationName, Operation>>;
