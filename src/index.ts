import { type ComposeOptions, compose } from './compose.ts';
import { connectTo, type ServerOptions, tasksOf } from './connect.ts';
import { ThroughlineError } from './core/errors.ts';
import { checkOptions, given, type OptionNames } from './core/input/arguments.ts';
import type { OnPermission } from './library/answering.ts';
import { Throughline } from './library/throughline.ts';

/** Without `server`: everything runs in this process. With `server`: that server does the work, with its own settings. */
export type OpenOptions = Omit<ComposeOptions, 'health' | 'looks'> &
  Partial<Omit<ServerOptions, 'onAway'>> & {
    /** Answers the questions of agents. Left out: they are denied at once, unless `permissions` or the settings say "ask". */
    readonly onPermission?: OnPermission;
    /**
     * Whether this process also runs what other processes of the data home have left: accepted turns that nobody has taken within a
     * second, and tasks. Left out: yes.
     */
    readonly takeUp?: boolean;
  };

const OPEN_OPTIONS: OptionNames<OpenOptions> = {
  home: true,
  config: true,
  settings: true,
  owner: true,
  engine: true,
  agents: true,
  onBug: true,
  onTrouble: true,
  telemetry: true,
  permissions: true,
  onPermission: true,
  server: true,
  token: true,
  takeUp: true,
};

/**
 * Opens Throughline. Embedded in this process: its store, its agents, and a worker for the conversations used here and for what dead
 * processes left. With `server`: through that server, which has them.
 */
export async function open(options: OpenOptions = {}): Promise<Throughline> {
  checkOptions(options, OPEN_OPTIONS, 'open()');
  const { server, token, onPermission, takeUp, ...own } = options;
  if (server !== undefined) return openServer({ ...own, ...given({ token, takeUp }), server }, onPermission);
  const claims = takeUp === false ? 'own' : 'left';
  const { engine, parts, tasks } = await compose({ ...(own as ComposeOptions), engine: { claims, ...own.engine } });
  return new Throughline(engine, await tasks(), parts, onPermission);
}

/** The server has its own settings, so options about them are refused. */
async function openServer(
  { server, token, home, owner, ...rest }: ServerOptions,
  onPermission: OnPermission | undefined,
): Promise<Throughline> {
  const [ignored] = Object.entries(rest).find(([, value]) => value !== undefined) ?? [];
  if (ignored !== undefined) {
    throw new ThroughlineError(
      'refused',
      `"${ignored}" cannot be used together with "server": the server has its own.`,
    );
  }
  const engine = await connectTo({ server, token, home, owner });
  return new Throughline(engine, await tasksOf(engine), null, onPermission);
}

export { ERROR_CODES, type ErrorCode, type Failure, ThroughlineError } from './core/errors.ts';
export type { EventKind } from './core/event.ts';
export type { ExportedConversation } from './core/portable.ts';
export type {
  PublicConversation as Conversation,
  PublicLock as Lock,
  PublicSummary as Summary,
} from './core/public/conversation.ts';
export type { PublicEvent as ConversationEvent, PublicEventPayloads as EventPayloads } from './core/public/event.ts';
export type { PublicReceipt as Receipt, PublicSession as Session } from './core/public/session.ts';
export type {
  PublicTask as Task,
  PublicTaskEvent as TaskEvent,
  PublicTaskTurn as TaskTurn,
} from './core/public/task.ts';
export type { PublicPermission as Permission, PublicTurn as Turn } from './core/public/turn.ts';
export type { Proof, Tried } from './core/restore/receipt.ts';
export type { Policy, ReceiptRung, RestoreOverride, Rung } from './core/restore/restore-settings.ts';
export type { Decision, TaskState } from './core/tasks/task.ts';
export type { TaskReport } from './core/tasks/task-report.ts';
export type { ContentBlock, Prompt } from './core/turn/content.ts';
export type { Denial, PermissionOption } from './core/turn/permission.ts';
export type { RecordPart, TurnRecord } from './core/turn/record.ts';
export type { TurnState } from './core/turn/turn.ts';
export type { Update } from './core/turn/update.ts';
export type { Usage } from './core/turn/usage.ts';
export type { OnPermission } from './library/answering.ts';
export type { Answer, ConversationHandle, Sending, SendOptions } from './library/conversation.ts';
export type { Throughline } from './library/throughline.ts';
export type { TrackedRequest, TrackedSession } from './library/tracker/tracked-requests.ts';
export type { CompletedRequest, ConversationTracker, NewRequest } from './library/tracker/tracker.ts';
export type { ConversationView, Engine, Hint, SearchHit } from './ports/engine.ts';
export type { Tasks } from './ports/tasks.ts';
