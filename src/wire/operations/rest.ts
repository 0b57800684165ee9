import * as z from 'zod';
import { PAGE_SCOPES } from '../../core/key.ts';
import { Day, Flag, LastUsage, Limit, Words } from '../parameters.ts';
import { namedObject } from '../registry.ts';
import type { OperationName } from '../routes.ts';
import { Id, Time } from '../values/common.ts';
import { SearchHit } from '../values/conversation.ts';
import { Feeds, LiveFrame } from '../values/live.ts';
import { Agent, Caller, Finding, Health, Hint, UsageRow } from '../values/rest.ts';
import type { Operation } from './operation.ts';

export const rest = {
  whoAmI: {
    summary:
      'Returns who the caller is: its owner, its credentials, its scopes, the other owners that it can act for (`*`, a prefix as `app:*`, null: none), ' +
      'whether it is the operator (with `admin`, it may use operations that concern all owners), and when the credentials expire (null: never).',
    scope: 'read',
    answer: Caller,
  },
  getHealth: {
    summary:
      'Returns whether the server is ready for new work, and what does not work, with what to do. `/healthz` answers the same ' +
      'without credentials, and names only the codes. `details`: also the size of the store and how fast it writes, the sandboxes, and who ' +
      "holds which of the caller's conversations, with the sessions whose agents run (`kill` ends them; `moreLeases`: how many more there are than the 500 that are listed). A detail that cannot be read now is null.",
    scope: 'admin',
    query: z.strictObject({ details: z.exactOptional(Flag) }),
    answer: Health,
  },
  examine: {
    summary:
      'Returns what `throughline doctor` finds: damage, loss, and what crashes left behind. Nothing is changed. Reads the whole store in ' +
      'another process, so it may take a while. Only for the owner that the server was started for, because it concerns all owners.',
    scope: 'admin',
    operatorOnly: true,
    answer: namedObject('Findings', { findings: z.array(Finding) }),
  },
  newLink: {
    summary:
      'Creates a link that signs a browser in, once and within 15 minutes, for a week. `owner` and `scopes`: for whom it acts and what it may ' +
      'do; default: those of the caller. Needs the token of the data home, or a signed-in browser with the scope `admin`, whose link has ' +
      'the same owner, at most its scopes, and ends with it. A link for another owner than that of the server has to name its scopes.',
    scope: 'admin',
    notByKey: true,
    body: namedObject('NewLink', {
      owner: z.exactOptional(Id),
      scopes: z.exactOptional(z.array(z.enum(PAGE_SCOPES)).max(PAGE_SCOPES.length)),
    }),
    status: 201,
    answer: namedObject('Link', {
      link: z.string(),
      expiresAt: Time,
      owner: z.string(),
      scopes: z.array(z.enum(PAGE_SCOPES)),
    }),
  },
  hints: {
    summary:
      'Streams which conversations of the caller have changed. These are hints: some may be missing or repeated.',
    scope: 'read',
    stream: true,
    answer: Hint,
  },
  openStream: {
    summary:
      'Streams several feeds over one connection: hints, the board, conversations, each after its own number and under the name that ' +
      'the caller gives it. The first frame names the stream, and every other one its feed. A fault of one feed ends only that feed ' +
      '(`ended`).',
    scope: 'read',
    body: Feeds,
    stream: true,
    answer: LiveFrame,
  },
  setFeeds: {
    summary:
      'Sets all feeds of an open stream. Feeds whose names it has already continue unchanged, new ones begin, all others end. 404: the ' +
      'stream has ended; open another one.',
    scope: 'read',
    body: Feeds,
    answer: namedObject('FeedNames', { feeds: z.array(z.string()) }),
  },
  search: {
    summary:
      'Finds conversations whose title contains all the words, and then turns whose prompt or answer does, best first. The last word may be ' +
      'the beginning of one. A conversation is not listed for its title when one of its turns is found.',
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
