import type { Conversation, Permission, Task } from 'throughline/client';
import { writtenOut } from '../../../src/core/input/marks.ts';
import { warningOf } from '../../../src/core/input/warning.ts';
import { askedOf, markableTexts } from '../permissions/asked.ts';
import type { Need } from './sections.ts';

/** What somebody is needed for, in a few words that follow the name of the project. */
export function wordsOf(need: Need): string {
  if (need.kind === 'questions') {
    const [{ title, toolCall }, ...more] = need.permissions;
    const { verb, object } = questionOf({ title, toolCall });
    const first = verb === null ? `asks: ${object}` : `asks to ${verb} ${object}`;
    return more.length === 0 ? first : `${first}, and ${more.length} more`;
  }
  if (need.kind === 'task') return taskWords(need.task);
  if (need.kind === 'stranded') return need.conversation.stranded?.message ?? '';
  return 'was not restored, its prompt was not sent';
}

export function taskWords({ state, progress }: Pick<Task, 'state' | 'progress'>): string {
  if (state === 'failed') return `gave up after try ${progress.iteration}`;
  return progress.decision?.reason ?? 'the task asks';
}

interface Question {
  /** Null: the agent asks something else. */
  readonly verb: 'run' | 'change' | null;
  /** The command, the file, or the question. Characters that deceive are written out. */
  readonly object: string;
}

export function questionOf(permission: Pick<Permission, 'title' | 'toolCall'>): Question {
  const { command, diffs, kind, targets } = askedOf(permission);
  if (command !== null) return { verb: 'run', object: writtenOut(command, 'code') };
  const file = diffs[0]?.path ?? (kind === 'edit' ? targets[0] : undefined);
  // An agent may ask in its own words, and name the file beside them.
  if (file !== undefined && permission.title.includes(file.slice(file.lastIndexOf('/') + 1))) {
    const more = new Set(diffs.map(({ path }) => path)).size - 1;
    return { verb: 'change', object: `${writtenOut(file, 'code')}${more > 0 ? ` and ${more} more` : ''}` };
  }
  return { verb: null, object: writtenOut(permission.title, 'code') };
}

/** A longer question has to be opened to be read. */
const MOST_IN_A_ROW = 80;

/** Whether a row shows all that a person must know to answer: one line, and no character that is not what it seems. */
export function fitsInRow(permissions: readonly Permission[]): boolean {
  const [permission] = permissions;
  if (permission === undefined || permissions.length > 1) return false;
  const asked = askedOf(permission);
  const { object, verb } = questionOf(permission);
  const isShort = object.length <= MOST_IN_A_ROW && !/[\n\r\t]/.test(object);
  const rest = [...asked.targets, ...asked.texts, asked.input].filter((text) => text !== null);
  const hasMore = rest.some((text) => text !== object) || asked.diffs.length > 0;
  return isShort && !hasMore && verb !== 'change' && !isMarked(permission);
}

/** Whether a character in it is not what a person would see. */
export function isMarked(permission: Permission): boolean {
  return warningOf([permission.title, ...markableTexts(askedOf(permission))]) !== null;
}

/** The second line of a conversation in the rail: only news. Null: there are none. */
export function newsOf(row: Conversation, task: Task | undefined): string | null {
  if (row.stranded !== null && row.open > 0) return row.stranded.message;
  if (row.delayed !== null) return row.delayed.message;
  if (task === undefined || row.open === 0) return null;
  const { progress, maxIterations } = task;
  const last =
    progress.lastGate === null || progress.lastGate.verdict === 'pass' ? '' : ` · ${progress.lastGate.summary}`;
  return `Task · try ${progress.iteration} of ${maxIterations}${last}`;
}
