import type { Prompt, ThroughlineClient } from 'throughline/client';
import { useStore } from 'zustand';
import { createStore, type StoreApi } from 'zustand/vanilla';
import { describeError } from '../errors.ts';
import { readPreference, watchPreference, writePreference } from '../preferences.ts';
import { checkSignIn, useSession } from '../session.ts';
import { afterSending, type NextTurn, submitOptions } from './choices.ts';
import { type Attachment, attachmentsIn, promptOf, tooMuch, wordsIn } from './prompt.ts';

/*
 * A prompt that somebody writes and has not sent. It survives a reload, and is cleared only when the server has accepted the prompt.
 *
 *   writing ──▶ sending ──▶ writing (empty)       accepted
 *                       ──▶ writing (unchanged)   refused, or no answer: the next try has the same request id
 *
 * The request id is stored with the draft before it is sent, and removed by the first change. So one draft becomes one turn, however
 * often it is sent, also after a reload.
 */

interface Draft {
  readonly text: string;
  readonly attachments: readonly Attachment[];
  readonly next: NextTurn;
  readonly isSending: boolean;
  /** Why the last try to send it failed; null: it did not. */
  readonly error: unknown;
}

/** The id of the draft for a new conversation. */
export const NEW = 'new';

const drafts = new Map<string, StoreApi<Draft>>();

export function draftOf(id: string): StoreApi<Draft> {
  const known = drafts.get(id);
  if (known !== undefined) return known;
  const next = readJson<NextTurn>(`choices.${id}`) ?? {};
  const text = readPreference(`draft.${id}`) ?? '';
  const draft = createStore<Draft>(() => ({ text, attachments: [], next, isSending: false, error: null }));
  drafts.set(id, draft);
  void readFiles(id).then((attachments) => {
    if (attachments.length > 0) draft.setState((now) => ({ attachments: [...attachments, ...now.attachments] }));
  });
  // Another tab has changed it.
  watchPreference(`draft.${id}`, (value) => {
    if (!isWriting) draft.setState({ text: value ?? '' });
  });
  return draft;
}

export function useDraft(id: string): Draft {
  return useStore(draftOf(id));
}

/** Set while this tab writes: storage that is full or switched off would return another text than the draft has. */
let isWriting = false;

export function editDraft(id: string, change: Partial<Pick<Draft, 'text' | 'attachments' | 'next'>>): void {
  draftOf(id).setState({ ...change, error: null });
  isWriting = true;
  writePreference(`sending.${id}`, null);
  if (change.text !== undefined) writePreference(`draft.${id}`, change.text || null);
  isWriting = false;
  noteWritten(id);
  if (change.next !== undefined) writeJson(`choices.${id}`, change.next);
  if (change.attachments !== undefined) void writeFiles(id, change.attachments);
}

/** The time of a draft is stored at most once an hour, not for every letter. */
const NOTE_MS = 3_600_000;

/** Stores when it was written last, and by whom, so that old drafts can be deleted (`freeDrafts`). */
function noteWritten(id: string): void {
  const { text, attachments, next } = draftOf(id).getState();
  const isNothing = text === '' && attachments.length === 0 && Object.keys(next).length === 0;
  const session = useSession.getState();
  const owner = session.phase === 'ready' ? session.me.owner : '';
  const before = writtenIn(readPreference(`written.${id}`));
  if (!isNothing && before?.owner === owner && Date.now() - before.at < NOTE_MS) return;
  writePreference(`written.${id}`, isNothing ? null : `${Date.now()} ${owner}`);
}

export interface Written {
  readonly at: number;
  readonly owner: string;
}

/** Null: nothing valid is stored. */
export function writtenIn(stored: string | null): Written | null {
  const [, at, owner] = /^(\d+) (.*)$/s.exec(stored ?? '') ?? [];
  return at === undefined || owner === undefined ? null : { at: Number(at), owner };
}

/** Deletes the draft with everything that is stored for it. */
export function forgetDraft(id: string): void {
  editDraft(id, { text: '', attachments: [], next: {} });
}

/** Puts a prompt, with its files, into the composer of a conversation. */
export function putDraft(id: string, prompt: Prompt): void {
  editDraft(id, { text: wordsIn(prompt), attachments: attachmentsIn(prompt) });
}

/** Sends the draft. `agent`: who answers if none is chosen. `to`: the id of the conversation. Null: not accepted; the draft has the error. */
export async function sendDraft(
  tl: ThroughlineClient,
  id: string,
  agent: string | null,
  to = () => Promise.resolve(id),
) {
  const draft = draftOf(id);
  const { text, attachments, next, isSending } = draft.getState();
  const prompt = promptOf(text, attachments);
  if (isSending || prompt.length === 0) return null;
  const fault = tooMuch(prompt);
  if (fault !== null) {
    draft.setState({ error: new Error(fault) });
    return null;
  }
  const requestId = readPreference(`sending.${id}`) ?? crypto.randomUUID();
  writePreference(`sending.${id}`, requestId);
  draft.setState({ isSending: true, error: null });
  try {
    const conversation = await to();
    const options = { ...submitOptions(next, agent), create: false, requestId };
    const submitted = await tl.engine.submit(conversation, prompt, options);
    draft.setState({ isSending: false });
    accepted(id, text, attachments);
    return submitted;
  } catch (error) {
    // If the sign-in has ended, the page says how to sign in again. The draft stays.
    if (describeError(error).code === 'refused') void checkSignIn();
    draft.setState({ isSending: false, error });
    return null;
  }
}

/** Clears what was accepted, and keeps what was written after it. */
function accepted(id: string, text: string, attachments: readonly Attachment[]): void {
  const now = draftOf(id).getState();
  editDraft(id, {
    text: now.text.startsWith(text) ? now.text.slice(text.length) : now.text,
    attachments: now.attachments.filter((one) => !attachments.includes(one)),
    next: afterSending(now.next),
  });
}

/** Clears the draft if its turn is stored: the reply was lost, or the page was reloaded before it arrived. */
export function clearIfAccepted(id: string, requestId: string): void {
  const { text, attachments, isSending } = draftOf(id).getState();
  if (!isSending && readPreference(`sending.${id}`) === requestId) accepted(id, text, attachments);
}

function readJson<T>(name: string): T | null {
  try {
    return JSON.parse(readPreference(name) ?? 'null') as T | null;
  } catch {
    return null; // not valid
  }
}

function writeJson(name: string, value: object): void {
  writePreference(name, Object.keys(value).length === 0 ? null : JSON.stringify(value));
}

/** Files are too large for `localStorage`. Without IndexedDB they are lost when the page is closed. */
function openFiles(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open('throughline.drafts', 1);
    request.onupgradeneeded = () => request.result.createObjectStore('files');
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function inFiles<T>(mode: IDBTransactionMode, work: (files: IDBObjectStore) => IDBRequest<T>): Promise<T | null> {
  try {
    const database = await openFiles();
    const request = work(database.transaction('files', mode).objectStore('files'));
    return (await new Promise((resolve) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => resolve(null);
    }).finally(() => database.close())) as T | null;
  } catch {
    return null; // switched off, or full: they stay in the page
  }
}

async function readFiles(id: string): Promise<Attachment[]> {
  return (await inFiles('readonly', (files) => files.get(id) as IDBRequest<Attachment[] | undefined>)) ?? [];
}

async function writeFiles(id: string, attachments: readonly Attachment[]): Promise<void> {
  await inFiles(
    'readwrite',
    (files): IDBRequest => (attachments.length === 0 ? files.delete(id) : files.put(attachments, id)),
  );
}
