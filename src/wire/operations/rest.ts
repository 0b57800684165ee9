import * as z from 'zod';
import { Day, Flag, LastUsage, Limit, Words } from '../parameters.ts';
import { named } from '../registry.ts';
import { Time } from '../values/common.ts';
import { SearchHit } from '../values/conversation.ts';
import { Agent, Hint, UsageRow, WhoAsks } from '../values/rest.ts';
import type { Operation } from './operation.ts';

export const rest = {
  whoAsks: {
    method: 'GET',
    path: '/me',
    summary: 'Who asks, as far as this server is concerned: on whose behalf, by which hand, with which scopes.',
    scope: 'read',
    status: 200,
    answer: WhoAsks,
  },
  newLink: {
    method: 'POST',
    path: '/links',
    summary:
      'A link that signs a browser in, once and within 15 minutes, for all that the token opens: only the token is given one.',
    scope: 'admin',
    tokenOnly: true,
    status: 201,
    answer: named('Link', z.strictObject({ link: z.string(), expiresAt: Time })),
  },
  hints: {
    method: 'GET',
    path: '/events',
    summary:
      'Says which conversations of the caller to look at again, as they change. Hints only: nothing depends on them.',
    scope: 'read',
    stream: true,
    status: 200,
    answer: Hint,
  },
  search: {
    method: 'GET',
    path: '/search',
    summary: 'Turns whose prompt or answer has all the words, best first.',
    scope: 'read',
    query: z.strictObject({ q: Words, limit: z.exactOptional(Limit) }),
    status: 200,
    answer: named('SearchHits', z.strictObject({ hits: z.array(SearchHit) })),
  },
  usage: {
    method: 'GET',
    path: '/usage',
    summary:
      'What was used, by day (UTC) and agent, newest day first; `before` is the last row of the page before, as DAY_AGENT: go on ' +
      'until one is empty.',
    scope: 'read',
    query: z.strictObject({
      since: z.exactOptional(Day),
      limit: z.exactOptional(Limit),
      before: z.exactOptional(LastUsage),
    }),
    status: 200,
    answer: named('UsageRows', z.strictObject({ usage: z.array(UsageRow) })),
  },
  listAgents: {
    method: 'GET',
    path: '/agents',
    summary:
      'The agents there are, what they can do, and what is wrong with one that is not available; `login`: also whether somebody is logged in, for which each is started.',
    scope: 'read',
    query: z.strictObject({ login: z.exactOptional(Flag) }),
    status: 200,
    answer: named('Agents', z.strictObject({ agents: z.array(Agent) })),
  },
} as const satisfies Record<string, Operation>;
