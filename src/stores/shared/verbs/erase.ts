// Parts of erasing a conversation that are the same in all stores. Each store has its own way to delete what was said.

import type { Conversation } from '../../../core/conversation.ts';
import { ThroughlineError } from '../../../core/errors.ts';
import { storedProcess } from '../../../core/process.ts';
import type { TaskSpec } from '../../../core/tasks/task.ts';
import type { ErasedSession, Erasure, ToErase, UnfinishedErasure } from '../../../ports/store/conversations.ts';
import { isName, parsed, type Row } from '../rows.ts';
import { MOVED } from './places.ts';
import { all, one, run, type Steps, type StepTx } from './steps.ts';

/** The owner of the rows that remain of an erased conversation. No real owner has this name. */
const NOBODY = '';
const NOTE = 'INSERT INTO erasures (owner, conversation, at, sandbox) VALUES (?, ?, ?, ?)';
const NOTE_SANDBOX = 'UPDATE erasures SET sandbox = 1 WHERE owner = ? AND conversation = ?';
const END = 'UPDATE erasures SET sandbox = 0 WHERE owner = ? AND conversation = ?';
const UNFINISHED = `
  SELECT e.owner, e.conversation, c.sandbox FROM erasures e JOIN conversations c ON c.id = e.conversation
  WHERE e.sandbox = 1 AND c.place = ? AND e.at < ? ORDER BY e.at`;
const NOTED = `
  SELECT c.no, c.id, c.sandbox, c.place, 1 AS erased FROM erasures e JOIN conversations c ON c.id = e.conversation
  WHERE e.owner = ? AND e.conversation = ?`;
const FORGET_MOVE = "DELETE FROM facts WHERE owner = '' AND name = ?";
// Without the columns that hold JSON: also a damaged conversation can be erased.
const TO_ERASE = 'SELECT no, id, sandbox, place, 0 AS erased FROM conversations WHERE owner = ?';
const BY_ID = `${TO_ERASE} AND id = ?`;
const BY_KEY = `${TO_ERASE} AND key = ?`;
const CWD = 'SELECT cwd FROM conversations WHERE no = ?';
// A session that came with an import has no storage.
const SESSIONS = `
  SELECT id, agent, storage, process FROM sessions WHERE conv = ? AND storage <> ''
  GROUP BY id, agent, storage, process ORDER BY min(no)`;
const OTHERS = `
  SELECT 1 FROM conversations
  WHERE no <> ?2 AND owner <> '' AND (cwd = ?1 OR substr(cwd, 1, length(?1) + 1) = ?1 || '/') LIMIT 1`;
// ?: as in OF_CONVERSATION of task-changes.ts, the beginning of the field. SQLite ignores case here.
const TASKS_BELOW = `
  SELECT spec FROM tasks WHERE state IN ('waiting', 'queued', 'running', 'asking') AND spec LIKE ? ESCAPE '!'`;

interface ErasedRow extends Pick<Conversation, 'id' | 'sandbox' | 'place'> {
  readonly no: number;
  readonly erased: number;
}

export function* findToErase(owner: string, idOrKey: string): Steps<ToErase | null> {
  if (!isName(idOrKey)) return null;
  const byName = (yield* one<ErasedRow>(BY_ID, owner, idOrKey)) ?? (yield* one<ErasedRow>(BY_KEY, owner, idOrKey));
  const row = byName ?? (yield* findErased(owner, idOrKey));
  if (row === undefined) return null;
  const { id, sandbox, place, erased } = row;
  return { id, sandbox, place, isErased: erased === 1 };
}

/** One that was erased before. */
export function findErased(owner: string, id: string): Steps<ErasedRow | undefined> {
  return one<ErasedRow>(NOTED, owner, id);
}

/** The owner under which a conversation is found to check its chain. */
export function* verifiedOwner(owner: string, id: string): Steps<string> {
  return (yield* findErased(owner, id)) === undefined ? owner : NOBODY;
}

export function* noteErasure(tx: StepTx, owner: string, id: string, withSandbox: boolean): Steps<void> {
  yield* run(FORGET_MOVE, `${MOVED}${id}`);
  yield* run(NOTE, owner, id, tx.now, withSandbox ? 1 : 0);
  tx.moved(id);
}

/** The sandbox of one that was erased before is to be deleted as well. */
export function noteSandbox(owner: string, id: string): Steps<void> {
  return run(NOTE_SANDBOX, owner, id);
}

/** Its sandbox was deleted, or its owner was told why not. */
export function endErasure(_: StepTx, owner: string, id: string): Steps<void> {
  return run(END, owner, id);
}

export function unfinishedErasures(place: string, before: number): Steps<UnfinishedErasure[]> {
  return all<UnfinishedErasure>(UNFINISHED, place, before);
}

/** What the store does not erase. `withSessions` false: their rows cannot be read. */
export function* outsideOf(conv: number, withSessions = true): Steps<Erasure> {
  const sessions = withSessions ? yield* all<Row<ErasedSession, never, 'process'>>(SESSIONS, conv) : [];
  return {
    cwd: (yield* one<{ cwd: string | null }>(CWD, conv))?.cwd ?? null,
    sessions: sessions.map((session) => ({ ...session, process: processOf(session.process) })),
  };
}

/** Null also where it is damaged. */
function processOf(json: string | null): ErasedSession['process'] {
  try {
    return storedProcess(parsed(json));
  } catch {
    return null;
  }
}

/** A directory in which another conversation or a task works is not deleted. The error does not say which one it is. */
export function* checkUnused(conv: number, directory: string | undefined): Steps<void> {
  if (directory === undefined) return;
  const isThere = ({ spec }: { spec: string }) => {
    const { cwd } = JSON.parse(spec) as Pick<TaskSpec, 'cwd'>;
    return cwd === directory || cwd?.startsWith(`${directory}/`);
  };
  const isUsed = (yield* one(OTHERS, directory, conv)) !== undefined;
  const field = `"cwd":${JSON.stringify(directory).slice(0, -1)}`.replaceAll(/[%_!]/g, '!$&');
  if (!isUsed && !(yield* all<{ spec: string }>(TASKS_BELOW, `%${field}%`)).some(isThere)) return;
  throw new ThroughlineError('refused', `Another conversation or task works in ${directory}.`, {
    hint: 'Erase the conversation without its sandbox, or erase the other one first.',
  });
}
