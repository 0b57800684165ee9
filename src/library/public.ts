/* The types that `throughline` (src/index.ts) and `throughline/client` (src/client.ts) both export. */

export type { ChangedFile, Changes, Keep, Kept, SizedFile } from '../core/changes.ts';
export type { ConversationState } from '../core/conversation.ts';
export type { ErrorCode, Failure } from '../core/errors.ts';
export type { Message } from '../core/input/messages.ts';
export type { ExportedConversation } from '../core/portable.ts';
export type {
  PublicConversation as Conversation,
  PublicLock as Lock,
  PublicSummary as Summary,
} from '../core/public/conversation.ts';
export type {
  PublicEvent as ConversationEvent,
  PublicEventKind as EventKind,
  PublicEventPayloads as EventPayloads,
} from '../core/public/event.ts';
export type { ChosenRepository, Directories, DirectoryEntry, Files } from '../core/public/files.ts';
export type { Feed, LiveFrame } from '../core/public/live-frame.ts';
export type { PublicSandbox as Sandbox, PublicSandboxUse as SandboxUse, SandboxView } from '../core/public/sandbox.ts';
export type {
  PublicReceipt as Receipt,
  PublicRestore as Restore,
  PublicSession as Session,
} from '../core/public/session.ts';
export type {
  PublicPlan as Plan,
  PublicPlanTask as PlanTask,
  PublicTask as Task,
  PublicTaskEvent as TaskEvent,
  PublicTaskTurn as TaskTurn,
} from '../core/public/task.ts';
export type {
  PublicPermission as Permission,
  PublicTold as Told,
  PublicTool as Tool,
  PublicTurn as Turn,
  TurnOutline,
} from '../core/public/turn.ts';
export type { Proof, Tried } from '../core/restore/receipt.ts';
export type { Policy, ReceiptRung, RestoreOverride, Rung, TurnRestore } from '../core/restore/restore-settings.ts';
export type { ToldPart } from '../core/restore/told.ts';
export type { ExecResult } from '../core/sandbox/sandbox.ts';
export type { PlanNeed, PlanState } from '../core/tasks/plan-state.ts';
export type { Decision, TaskState } from '../core/tasks/task.ts';
export type { TaskInput, TaskPlan } from '../core/tasks/task-plan.ts';
export type { TaskReport } from '../core/tasks/task-report.ts';
export type { ContentBlock, Prompt } from '../core/turn/content.ts';
export type { Denial, PermissionOption } from '../core/turn/permission.ts';
export type { RecordPart, TurnRecord } from '../core/turn/record.ts';
export type { TurnState } from '../core/turn/turn.ts';
export type { Update } from '../core/turn/update.ts';
export type { Usage } from '../core/turn/usage.ts';
export type { PublicFinding as Finding } from '../ports/doctor.ts';
export type { Live, LiveState } from '../ports/engine/live.ts';
export type { SandboxesDiskUse } from '../ports/engine/sandboxes.ts';
export type {
  AgentInfo,
  ConversationSpec,
  ConversationView,
  Engine,
  Erased,
  Hint,
  ImportOptions,
  QueueTurn,
  SearchHit,
  TurnAnswer,
  TurnView,
} from '../ports/engine.ts';
export type { Me, PublicLease as Lease, Server, ServerHealth } from '../ports/server.ts';
export type { Requeued } from '../ports/store/turns.ts';
export type { UsageRow } from '../ports/store/usage.ts';
export type { AddOptions, PlanOptions, RetryOptions, Tasks } from '../ports/tasks.ts';
export type {
  CompletedRequest,
  ConversationTracker,
  FailedRequest,
  NewRequest,
  TrackedRequest,
  TrackedSession,
} from '../ports/tracker.ts';
export type { Answer, PartialResult, TurnResult } from './answer.ts';
export type { OnPermission } from './answering.ts';
export type { ConversationHandle, SendOptions, TurnName } from './conversation.ts';
export type { SandboxHandle } from './sandbox.ts';
