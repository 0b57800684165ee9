import { connect as connectBy } from './clients/http/connect.ts';
import { HttpTasks } from './clients/http/tasks.ts';
import { fetchTransport } from './clients/http/transport.ts';
import { checkOptions } from './core/known-options.ts';
import { ThroughlineClient } from './library/client.ts';

/** `throughline/client`: Throughline through a server, in browsers and everywhere else where there is `fetch`. */

export interface ClientOptions {
  /** Where the server is: `https://agents.example.org`. In a page of that server, it may be left out. */
  readonly url?: string;
  /** A key, or the token of the data home. A page that is signed in needs none. */
  readonly token?: string;
  /** With the token of the data home: on whose behalf; left out: whoever the token stands for. */
  readonly owner?: string;
}

/** Throws `unreachable` when there is no such server, or one of another version, and `refused` when it does not know us. */
export async function connect(options: ClientOptions = {}): Promise<ThroughlineClient> {
  checkOptions(options, { url: true, token: true, owner: true }, 'connect()');
  const { url = '', token, owner } = options;
  const engine = await connectBy({ transport: fetchTransport(url), token: token ?? null, owner });
  return new ThroughlineClient(engine, new HttpTasks(engine.caller, null));
}

export type { ContentBlock, Prompt } from './core/content.ts';
export type { Conversation } from './core/conversation.ts';
export { ERROR_CODES, type ErrorCode, type Failure, ThroughlineError } from './core/errors.ts';
export type { ConversationEvent, EventKind, EventPayloads } from './core/event.ts';
export type { Permission, PermissionOption } from './core/permission.ts';
export type { Receipt } from './core/receipt.ts';
export type { Session } from './core/session.ts';
export type { Summary } from './core/summary.ts';
export type { Task, TaskEvent, TaskState } from './core/tasks/task.ts';
export type { TaskReport } from './core/tasks/task-report.ts';
export type { Turn, TurnState } from './core/turn.ts';
export type { Usage } from './core/usage.ts';
export type { ThroughlineClient } from './library/client.ts';
export type { Answer, ConversationHandle, Sending, SendOptions } from './library/conversation.ts';
export type { ConversationView, Engine, Hint } from './ports/engine.ts';
export type { Tasks } from './ports/tasks.ts';
