import { isObject } from '../../../core/content.ts';
import type { NativeSession } from '../../../ports/agent.ts';
import { asObject } from '../connection/capabilities.ts';
import type { AcpConnection } from '../connection/connection.ts';
import { type ProbeRequest, probing } from './probe.ts';

export interface ListRequest extends ProbeRequest {
  readonly cwd: string;
  /** The way to log in that is asked for first; null: none. */
  readonly auth: string | null;
}

/** Agents give them in pages. */
const MOST_PAGES = 50;

/** What the agent says that it has of this directory; null: it cannot say. Throws `agent_unavailable`. */
export function listSessions(request: ListRequest): Promise<NativeSession[] | null> {
  return probing(request, async ({ connection, can }) => {
    if (!can.list) return null;
    if (request.auth !== null) await connection.request('authenticate', { methodId: request.auth });
    return pagesOf(connection, request.cwd);
  });
}

async function pagesOf(connection: AcpConnection, cwd: string): Promise<NativeSession[]> {
  const all: NativeSession[] = [];
  let cursor: unknown;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const answer = asObject(await connection.request('session/list', { cwd, ...(page > 0 && { cursor }) }));
    const sessions = Array.isArray(answer.sessions) ? answer.sessions.filter(isObject) : [];
    all.push(...sessions.flatMap((session) => sessionOf(session, cwd)));
    cursor = answer.nextCursor;
    if (typeof cursor !== 'string' || cursor === '') break;
  }
  return all;
}

/** Some list those of other directories, too. */
function sessionOf({ sessionId, cwd, title, updatedAt }: Record<string, unknown>, wanted: string): NativeSession[] {
  if (typeof sessionId !== 'string' || (typeof cwd === 'string' && cwd !== wanted)) return [];
  const time = typeof updatedAt === 'string' ? Date.parse(updatedAt) : Number.NaN;
  return [
    { id: sessionId, title: typeof title === 'string' ? title : null, updatedAt: Number.isNaN(time) ? null : time },
  ];
}
