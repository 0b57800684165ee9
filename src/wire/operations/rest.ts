import * as z from 'zod';
import { Day, Flag, LastUsage, Limit, Words } from '../parameters.ts';
import { namedObject } from '../registry.ts';
import type { OperationName } from '../routes.ts';
import { Time } from '../values/common.ts';
import { SearchHit } from '../values/conversation.ts';
import { Agent, Caller, Health, Hint, UsageRow } from '../values/rest.ts';
import type { Operation } from './operation.ts';

export const rest = {
  whoAmI: {
    summary: 'Returns who the caller is: its owner, its credentials and its scopes.',
    scope: 'read',
    answer: Caller,
  },
  getHealth: {
    summary:
      'Returns whether the server is ready for new work, and what does not work, with what to do. `/healthz` answers the same ' +
      'without credentials, and names only the codes.',
    scope: 'admin',
    answer: Health,
  },
  newLink: {
    summary:
      'Creates a link that signs a browser in, once and within 15 minutes, with every scope. Needs the token of the data home.',
    scope: 'admin',
    tokenOnly: true,
    status: 201,
    answer: namedObject('Link', { link: z.string(), expiresAt: Time }),
  },
  hints: {
    summary:
      'Streams which conversations of the caller have changed. These are hints: some may be missing or repeated.',
    scope: 'read',
    stream: true,
    answer: Hint,
  },
  search: {
    summary: 'Finds turns whose prompt or answer contains all the words, best first.',
    scope: 'read',
    query: z.strictObject({ q: Words, limit: z.exactOptional(Limit) }),
    answer: namedObject('SearchHits', { hits: z.array(SearchHit) }),
  },
  usage: {
    summary:
      'Returns usage by day (UTC) and agent, newest day first. `before`: the last row of the previous page, as DAY_AGENT. ' +
      'Continue until a page is empty.',
    scope: 'read',
    query: z.strictObject({
      since: z.exactOptional(Day),
      limit: z.exactOptional(Limit),
      before: z.exactOptional(LastUsage),
    }),
    answer: namedObject('UsageRows', { usage: z.array(UsageRow) }),
  },
  listAgents: {
    summary:
      'Lists the agents, what they can do, and why one is not available. `login`: also starts each to see whether somebody is logged ' +
      'in; needs the scope `admin`. Logins are kept for half a minute, problems for a few seconds.',
    scope: 'read',
    query: z.strictObject({ login: z.exactOptional(Flag) }),
    answer: namedObject('Agents', { agents: z.array(Agent) }),
  },
} as const satisfies Partial<Record<OperationName, Operation>>;
