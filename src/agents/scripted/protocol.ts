import type { Prompt } from '../../core/content.ts';
import type { Update } from '../../core/update.ts';
import type { AgentEvent, AgentOutcome } from '../../ports/agent.ts';
import type { ScriptedOptions } from './options.ts';

/*
 * What adapter and program say to each other: one JSON object a line, over the program's standard input and output.
 * Types only: the program is plain JavaScript and reads them in its comments.
 */

export type ToProgram =
  | {
      readonly type: 'open';
      readonly how: 'new' | 'resume';
      readonly id: string | null;
      /** Where sessions are kept. */
      readonly dir: string;
      readonly noTools: boolean;
      /** Always empty from our adapter; the program tells when asked, so that tests can see it. */
      readonly system: string;
      readonly options: ScriptedOptions;
    }
  | { readonly type: 'prompt'; readonly id: string; readonly content: Prompt }
  | { readonly type: 'cancel' }
  /** The no-tools profile ends here. */
  | { readonly type: 'tools' }
  | { readonly type: 'answer'; readonly id: string; readonly optionId: string | null };

export type FromProgram =
  | { readonly type: 'opened'; readonly id: string | null }
  | { readonly type: 'refused'; readonly reason: RefusalReason; readonly message: string }
  /** The prompt is in the session: as the entry of its own id, told after `parent`. */
  | { readonly type: 'accepted'; readonly prompt: string; readonly parent: string | null }
  /** What an agent does in a turn, it says as it is. */
  | Extract<AgentEvent, { type: 'session' | 'update' | 'permission' | 'usage' }>
  | { readonly type: 'ended'; readonly prompt: string; readonly outcome: AgentOutcome };

export type RefusalReason = 'not_found' | 'locked' | 'in_use' | 'refused';

/** One line of a session's storage. The entries of a session are chained: each names the one that it was told after. */
export type Entry = {
  /** Of a prompt: the id that it was given by whoever sent it. */
  readonly uuid: string;
  readonly parent: string | null;
  /** Its number in the file, from 1. */
  readonly n: number;
  readonly at: number;
} & ({ readonly role: 'user'; readonly text: string } | { readonly role: 'agent'; readonly update: Update });
