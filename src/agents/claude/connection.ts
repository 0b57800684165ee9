import { asSentence, ThroughlineError } from '../../core/errors.ts';
import type { SandboxProcess } from '../../core/process.ts';
import { isObject } from '../../core/turn/content.ts';
import type { Opened } from '../../ports/agent.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';

/** One running Claude that speaks stream-json, started by the SDK or by us. */
export interface ClaudeConnection {
  /** Null: it could not be started. */
  readonly process: SandboxProcess | null;
  readonly alive: boolean;
  /** The models that it offered when it started; empty: none. */
  readonly models: readonly unknown[];
  /** Every message it prints, parsed, in order; ends when its output has ended, never throws. Consumed once, by the session. */
  readonly messages: AsyncIterable<ClaudeMessage>;
  /** Sends one user message. Never throws; does nothing once the process has ended. */
  send(message: ClaudeUserMessage): void;
  /** Asks Claude to stop the turn. Resolves when it has answered or ended; never throws. */
  interrupt(): Promise<void>;
  /** Sets the mode or the effort for all later prompts. Returns null, or why that was not possible. Never throws. */
  set(what: Setting): Promise<string | null>;
  /** How it ended (exit code or signal, end of stderr); null while alive. */
  readonly ending: string | null;
  /** Ends the process: properly, after a timeout by force. Idempotent; never throws. */
  close(): Promise<void>;
  /** Ends the process at once and waits until it is gone. Idempotent; never throws. */
  kill(): Promise<void>;
}

/** An effort of null is Claude's default. Not the model: Claude would add a change of it to the conversation, as words of the person. */
export type Setting = { readonly mode: string } | { readonly effort: string | null };

export interface ConnectRequest {
  readonly sandbox: OpenSandbox;
  /** Everything that the adapter adds to the allowlisted environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly how:
    | { readonly kind: 'new'; readonly id: string }
    /** `rewind`: continue from the entry `at`, and drop the prompt `drops` that came after it. Left out: continue from the end. */
    | {
        readonly kind: 'resume';
        readonly id: string;
        readonly rewind?: { readonly at: string; readonly drops: string };
      };
  readonly noTools: boolean;
  /** Null: the one that Claude chooses. */
  readonly model: string | null;
  /** Aborting while Claude starts ends it; afterwards it has no effect. */
  readonly signal: AbortSignal;
  /** Asked before a tool runs; the answer goes back to Claude. Never rejects. */
  onPermission(question: PermissionQuestion): Promise<PermissionDecision>;
}

/** The ids of Claude's sessions. */
export const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Resolves when Claude is ready for prompts. Throws `agent_unavailable`, or a `ClaudeRefusal`. */
export type Connect = (request: ConnectRequest) => Promise<ClaudeConnection>;

/** Claude runs, but does not open this session. */
export class ClaudeRefusal extends Error {
  readonly reason: Extract<Opened, { ok: false }>['reason'];

  constructor(reason: ClaudeRefusal['reason'], message: string) {
    super(message);
    this.name = 'ClaudeRefusal';
    this.reason = reason;
  }
}

/** What Claude prints when it does not open a session, and what that means. Seen with 2.1.325. */
const REFUSALS: readonly (readonly [RegExp, ClaudeRefusal['reason']])[] = [
  [/No conversation found/i, 'not_found'],
  [/is not a UUID and does not match any session title/i, 'not_found'],
  // Its transcript exists; there is no lock. For an id that we have recorded, an earlier attempt has created it.
  [/Session ID \S+ is already in use/i, 'in_use'],
  // No version that we have seen has locks. If a later one reports a lock, we try again.
  [/session (?:\S+ )?is locked|locked by another process/i, 'locked'],
];

/** Null: Claude ended for another reason. */
export function refusalOf(output: string): ClaudeRefusal | null {
  const refusal = REFUSALS.find(([words]) => words.test(output));
  if (refusal === undefined) return null;
  const [words, reason] = refusal;
  const line = output.split('\n').find((one) => words.test(one)) ?? output;
  return new ClaudeRefusal(reason, line.replace(/^.*?(?:\bError: )/, '').trim());
}

/** Claude runs, but answered `initialize` with this error. */
export function notOpened({ kind }: ConnectRequest['how'], said: string): Error {
  const refusal = refusalOf(said);
  if (refusal !== null) return refusal;
  const message = `Claude did not open its session: ${said}`;
  // Another way of restoring may still work. A new session is the last one.
  if (kind === 'resume') return new ClaudeRefusal('refused', message);
  return new ThroughlineError('agent_unavailable', asSentence(message), {
    hint: '"throughline agents" shows which Claude is used; run it by hand to see its error.',
  });
}

/** What Claude wants to do. */
export interface PermissionQuestion {
  readonly toolName: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly toolUseId: string | null;
  /** Rules that Claude offers for such questions in future; empty: none. */
  readonly suggestions: readonly unknown[];
  /** The question as a sentence; null: Claude gave none. */
  readonly title: string | null;
  /** Aborted when Claude no longer waits for the answer. */
  readonly signal: AbortSignal;
}

export type PermissionDecision =
  | {
      readonly behavior: 'allow';
      readonly updatedInput: Readonly<Record<string, unknown>>;
      /** The suggestions, when the answer was "always". */
      readonly updatedPermissions?: readonly unknown[];
    }
  | { readonly behavior: 'deny'; readonly message: string };

/** The models in Claude's answer to `initialize`. */
export function modelsIn(answer: unknown): readonly unknown[] {
  return isObject(answer) && Array.isArray(answer.models) ? answer.models : [];
}

/** Claude's answer to a request of ours; null: it ended before it answered. */
export type ControlAnswer =
  | { readonly ok: true; readonly response: unknown }
  | { readonly ok: false; readonly error: string }
  | null;

/**
 * A line of Claude's output. Only the fields that we read are named; others are kept. Any version may leave any of them out.
 */
export interface ClaudeMessage {
  readonly type: string;
  readonly subtype?: string;
  readonly uuid?: string;
  readonly session_id?: string;
  /** Of a subagent's messages: the tool call that started it; null or left out: the main chain. */
  readonly parent_tool_use_id?: string | null;
  readonly [field: string]: unknown;
}

/** A prompt as Claude takes it. */
export interface ClaudeUserMessage {
  readonly type: 'user';
  /** Becomes the uuid of the transcript's entry and `user_message_uuid` of the result. */
  readonly uuid: string;
  readonly session_id: string;
  readonly parent_tool_use_id: null;
  readonly message: { readonly role: 'user'; readonly content: string | readonly ClaudeBlock[] };
}

export type ClaudeBlock =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'image';
      readonly source: { readonly type: 'base64'; readonly media_type: string; readonly data: string };
    };
