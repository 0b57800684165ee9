import { connect as connectBy } from './clients/http/connect.ts';
import { fetchTransport } from './clients/http/connection/transport.ts';
import { HttpTasks } from './clients/http/tasks.ts';
import { checkOptions } from './core/input/arguments.ts';
import type { OnPermission } from './library/answering.ts';
import { ThroughlineClient } from './library/client.ts';

/** `throughline/client`: Throughline through a server, in browsers and everywhere else with `fetch`. */

export interface ClientOptions {
  /** The address of the server: `https://agents.example.org`. Pages of that server may leave it out. */
  readonly url?: string;
  /** A key, or the token of the data home. A browser that is signed in needs none. */
  readonly token?: string;
  /** With the token of the data home: the owner to act for; left out: the owner of the server. */
  readonly owner?: string;
  /** Answers the questions of agents. Left out: whoever else follows the conversation does, or they are denied after a while. */
  readonly onPermission?: OnPermission;
}

/** Throws `unreachable` when there is no such server or it has another interface, and `refused` for invalid credentials. */
export async function connect(options: ClientOptions = {}): Promise<ThroughlineClient> {
  checkOptions(options, { url: true, token: true, owner: true, onPermission: true }, 'connect()');
  const { url = '', token, owner, onPermission } = options;
  const engine = await connectBy({ transport: fetchTransport(url), token: token ?? null, owner });
  return new ThroughlineClient(engine, new HttpTasks(engine.caller, null), onPermission);
}

export { ERROR_CODES, type ErrorCode, type Failure, ThroughlineError } from './core/errors.ts';
export type { EventKind } from './core/event.ts';
export type { PublicConversation as Conversation, PublicSummary as Summary } from './core/public/conversation.ts';
export type { PublicEvent as ConversationEvent, PublicEventPayloads as EventPayloads } from './core/public/event.ts';
export type { PublicReceipt as Receipt, PublicSession as Session } from './core/public/session.ts';
export type { PublicTask as Task, PublicTaskEvent as TaskEvent } from './core/public/task.ts';
export type { PublicPermission as Permission, PublicTurn as Turn } from './core/public/turn.ts';
export type { TaskState } from './core/tasks/task.ts';
export type { TaskReport } from './core/tasks/task-report.ts';
export type { ContentBlock, Prompt } from './core/turn/content.ts';
export type { Denial, PermissionOption } from './core/turn/permission.ts';
export type { TurnState } from './core/turn/turn.ts';
export type { Usage } from './core/turn/usage.ts';
export type { OnPermission } from './library/answering.ts';
export type { ThroughlineClient } from './library/client.ts';
export type { Answer, ConversationHandle, Sending, SendOptions } from './library/conversation.ts';
export type { ConversationView, Engine, Hint, SearchHit } from './ports/engine.ts';
export type { Tasks } from './ports/tasks.ts';
