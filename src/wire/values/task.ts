import * as z from 'zod';
import type {
  PublicPlan,
  PublicTask,
  PublicTaskEvent,
  PublicTaskTurn,
  PublicTaskUsageRow,
} from '../../core/public/task.ts';
import { PLAN_STATES } from '../../core/tasks/plan-state.ts';
import {
  DECISION_CODES,
  DECISIONS,
  type Decision as DecisionValue,
  SESSION_MODES,
  TASK_STATES,
  TURN_PURPOSES,
} from '../../core/tasks/task.ts';
import { type GateResult as GateResultValue, VERDICTS } from '../../core/tasks/task-gate.ts';
import type { TaskReport as TaskReportValue } from '../../core/tasks/task-report.ts';
import { named, namedObject } from '../registry.ts';
import { Count, Failure, Stranded, Time, Usage } from './common.ts';
import { Session } from './session.ts';
import { Denial, PermissionMode, TurnEnd } from './turn.ts';

const text = z.string();
const State = z.enum(TASK_STATES);
const Waits = z.strictObject({ count: Count, ms: Count });
const Step = { round: Count, iteration: Count };

const GateResult = namedObject('GateResult', {
  verdict: z.enum(VERDICTS),
  summary: text,
  output: text,
  cut: Count,
  ms: z.number(),
}) satisfies z.ZodType<GateResultValue>;

const decision = { decision: z.enum(DECISIONS), code: z.enum(DECISION_CODES), reason: text };
const Decision = named('Decision', z.strictObject(decision)) satisfies z.ZodType<DecisionValue>;

const TaskTurn = namedObject('TaskTurn', {
  purpose: z.enum(TURN_PURPOSES),
  ...Step,
  turnId: text.nullable(),
  conversationId: text,
  agent: text,
  outcome: TurnEnd,
  failure: Failure.nullable(),
  sessionId: text.nullable(),
  rung: text.nullable(),
  usage: Usage,
  lockWaits: Waits,
  denied: z.array(Denial),
  endedAt: Time,
}) satisfies z.ZodType<PublicTaskTurn>;

const Gate = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('command'), command: text, timeoutMs: Count }),
  z.strictObject({ kind: z.literal('agent'), agent: text, ask: text }),
]);

export const Task = namedObject('Task', {
  id: text,
  owner: text,
  planId: text,
  name: text.nullable(),
  goal: text,
  gate: Gate.nullable(),
  milestone: text.nullable(),
  agent: text,
  sessions: z.enum(SESSION_MODES),
  session: text.nullable(),
  newSession: text.nullable(),
  maxIterations: Count,
  budget: z.strictObject({ costMicros: Count.nullable(), tokens: Count.nullable() }),
  after: z.array(text),
  retryInterrupted: Count,
  cwd: text.nullable(),
  sandbox: text.nullable(),
  permissions: PermissionMode,
  state: State,
  progress: z.strictObject({
    conversationId: text.nullable(),
    ...Step,
    tries: Count,
    turns: Count,
    spent: Usage,
    lockWaits: Waits,
    denied: Count,
    decision: Decision.nullable(),
    lastGate: z.strictObject({ verdict: z.enum(VERDICTS), summary: text, lastLine: text }).nullable(),
  }),
  cancelRequested: z.boolean(),
  stranded: Stranded.nullable(),
  createdAt: Time,
  startedAt: Time.nullable(),
  endedAt: Time.nullable(),
}) satisfies z.ZodType<PublicTask>;

export const Plan = namedObject('Plan', {
  id: text,
  state: z.enum(PLAN_STATES),
  needs: z.array(z.strictObject({ taskId: text, message: text, hint: text })),
  tasks: z.array(z.strictObject({ id: text, name: text.nullable(), state: State, decision: Decision.nullable() })),
}) satisfies z.ZodType<PublicPlan>;

const event = <K extends string, P extends z.ZodType>(kind: K, payload: P) =>
  z.strictObject({ seq: Count, taskId: text, kind: z.literal(kind), at: Time, payload });

export const TaskEvent = named(
  'TaskEvent',
  z.discriminatedUnion('kind', [
    event(
      'task.added',
      z.strictObject({ name: text.nullable(), goal: text, milestone: text.nullable(), agent: text, state: State }),
    ),
    event('task.queued', z.strictObject({ reason: text })),
    event('task.started', z.strictObject(Step)),
    event('task.opened', z.strictObject({ conversationId: text })),
    event('task.turned', TaskTurn),
    event('task.gated', z.strictObject({ ...Step, result: GateResult })),
    event('task.decided', z.strictObject({ ...decision, ...Step, state: State })),
    event('task.cancel_requested', z.strictObject({ by: text })),
    event('task.cancelled', z.strictObject({ by: text })),
    event('task.retried', z.strictObject({ by: text, say: text.nullable() })),
    event('event.unknown', z.strictObject({ kind: text })),
  ]),
) satisfies z.ZodType<PublicTaskEvent>;

export const TaskReport = namedObject('TaskReport', {
  task: Task,
  turns: z.array(TaskTurn),
  gates: z.array(z.strictObject({ ...Step, result: GateResult, at: Time })),
  decisions: z.array(z.strictObject({ ...decision, ...Step, state: State, at: Time })),
  sessions: z.array(Session.pick({ id: true, agent: true, origin: true, state: true, watermark: true, turns: true })),
}) satisfies z.ZodType<TaskReportValue>;

export const TaskUsageRow = namedObject('TaskUsageRow', {
  day: text,
  taskId: text,
  name: text.nullable(),
  milestone: text.nullable(),
  turns: Count,
  usage: Usage,
}) satisfies z.ZodType<PublicTaskUsageRow>;
