import * as z from 'zod';
import { Day, Flag, LastUsage, Limit, Words } from '../parameters.ts';
import { named } from '../registry.ts';
import { Time } from '../values/common.ts';
import { SearchHit } from '../values/conversation.ts';
import { Agent, Caller, Hint, UsageRow } from '../values/rest.ts';
import type { Operation } from './operation.ts';

export const rest = {
  whoAmI: {
    method: 'GET',
    path: '/me',
    summary: 'Returns who the caller is: its owner, its credentials and its scopes.',
    scope: 'read',
    status: 200,
    answer: Caller,
  },
  newLink: {
    method: 'POST',
    path: '/links',
    summary:
      'Creates a link that signs a browser in, once and within 15 minutes, with every scope. Needs the token of the data home.',
    scope: 'admin',
    tokenOnly: true,
    status: 201,
    answer: named('Link', z.strictObject({ link: z.string(), expiresAt: Time })),
  },
  hints: {
    method: 'GET',
    path: '/events',
    summary:
      'Streams which conversations of the caller have changed. These are hints: some may be missing or repeated.',
    scope: 'read',
    stream: true,
    status: 200,
    answer: Hint,
  },
  search: {
    method: 'GET',
    path: '/search',
    summary: 'Finds turns whose prompt or answer contains all the words, best first.',
    scope: 'read',
    query: z.strictObject({ q: Words, limit: z.exactOptional(Limit) }),
    status: 200,
    answer: named('SearchHits', z.strictObject({ hits: z.array(SearchHit) })),
  },
  usage: {
    method: 'GET',
    path: '/usage',
    summary:
      'Returns usage by day (UTC) and agent, newest day first. `before`: the last row of the previous page, as DAY_AGENT. ' +
      'Continue until a page is empty.',
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
      'Lists the agents, what they can do, and why one is not available. `login`: also starts each to see whether somebody is logged in.',
    scope: 'read',
    query: z.strictObject({ login: z.exactOptional(Flag) }),
    status: 200,
    answer: named('Agents', z.strictObject({ agents: z.array(Agent) })),
  },
} as const satisfies Record<string, Operation>;
