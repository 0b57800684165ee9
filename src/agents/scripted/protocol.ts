import { isObject, type Prompt } from '../../core/turn/content.ts';
import type { Update } from '../../core/turn/update.ts';
import type { AgentEvent, AgentOutcome } from '../../ports/agent.ts';
import { parseObject } from '../shared/json.ts';
import type { ScriptedOptions } from './options.ts';

/*
 * The protocol between adapter and program: one JSON object a line, over the program's standard input and output. The program is
 * plain JavaScript and names these types in its comments.
 */

export type ToProgram =
  | {
      readonly type: 'open';
      readonly how: 'new' | 'resume';
      readonly id: string | null;
      /** Where sessions are kept. */
      readonly dir: string;
      readonly noTools: boolean;
      /** Always empty from our adapter. The program repeats it when asked, so that tests can check that. */
      readonly system: string;
      readonly options: ScriptedOptions;
    }
  | { readonly type: 'prompt'; readonly id: string; readonly content: Prompt }
  | { readonly type: 'cancel' }
  /** Ends the profile without tools. */
  | { readonly type: 'tools' }
  | { readonly type: 'answer'; readonly id: string; readonly optionId: string | null };

export type FromProgram =
  | { readonly type: 'opened'; readonly id: string | null }
  | { readonly type: 'refused'; readonly reason: RefusalReason; readonly message: string }
  /** The prompt is in the session, as an entry with its own id, after `parent`. */
  | { readonly type: 'taken'; readonly prompt: string; readonly parent: string | null }
  /** What happens in a turn, in the form of the port's events. */
  | Extract<AgentEvent, { type: 'session' | 'update' | 'permission' | 'usage' }>
  | { readonly type: 'ended'; readonly prompt: string; readonly outcome: AgentOutcome };

export type RefusalReason = 'not_found' | 'locked' | 'in_use' | 'refused';

const isText = (value: unknown) => typeof value === 'string';
const isTextOrNull = (value: unknown) => value === null || isText(value);

/** The fields that each message must have. Other fields are passed on unchecked. */
const REQUIRED: { readonly [T in FromProgram['type']]: { readonly [field: string]: (value: unknown) => boolean } } = {
  opened: { id: isTextOrNull },
  refused: { reason: isText, message: isText },
  taken: { prompt: isText, parent: isTextOrNull },
  session: { id: isText },
  update: { update: (value) => isObject(value) && isText(value.sessionUpdate) },
  permission: { id: isText, title: isText, options: Array.isArray },
  usage: { usage: isObject },
  ended: { prompt: isText, outcome: (value) => isObject(value) && isText(value.kind) },
};

/** Null: not a message. Anything may be printed on stdout. */
export function parseMessage(line: string): FromProgram | null {
  const message = parseObject(line);
  if (typeof message?.type !== 'string' || !Object.hasOwn(REQUIRED, message.type)) return null;
  const type = message.type as FromProgram['type'];
  const whole = Object.entries(REQUIRED[type]).every(([field, check]) => check(message[field]));
  return whole ? (message as unknown as FromProgram) : null;
}

/** One line of a session's storage. The entries form a chain: each names its parent. */
export type Entry = {
  /** Of a prompt: the id that its sender gave it. */
  readonly uuid: string;
  readonly parent: string | null;
  /** Its number in the file, from 1. */
  readonly n: number;
  readonly at: number;
} & ({ readonly role: 'user'; readonly text: string } | { readonly role: 'agent'; readonly update: Update });
