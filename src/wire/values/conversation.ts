import * as z from 'zod';
import { CHANGE_KINDS, type Changes as ChangesValue, type Kept as KeptValue } from '../../core/changes.ts';
import { CONVERSATION_STATES, TITLE_SOURCES } from '../../core/conversation.ts';
import type { PublicConversation, PublicLock, PublicParent, PublicSummary } from '../../core/public/conversation.ts';
import type { Directories as DirectoriesValue, Files as FilesValue } from '../../core/public/files.ts';
import type { Erased as ErasedValue, SearchHit as HitValue, Remains as RemainsValue } from '../../ports/engine.ts';
import { namedObject } from '../registry.ts';
import { Budget, Choices, Count, Delayed, RestoreOverride, Stranded, Time, Usage } from './common.ts';

export const Parent = z.strictObject({ conversationId: z.string(), n: Count }) satisfies z.ZodType<PublicParent>;

export const Conversation = namedObject('Conversation', {
  id: z.string(),
  owner: z.string(),
  key: z.string().nullable(),
  title: z.string(),
  titleSource: z.enum(TITLE_SOURCES),
  pinned: z.boolean(),
  putAway: z.boolean(),
  agent: z.string().nullable(),
  driver: z.enum(['worker', 'tracker']),
  cwd: z.string().nullable(),
  project: z.strictObject({ path: z.string(), name: z.string() }).nullable(),
  worktree: z.boolean(),
  branch: z.string().nullable(),
  restore: RestoreOverride,
  limitPerDay: Budget.nullable(),
  choices: Choices.extend({ agent: z.exactOptional(z.string()) }),
  parent: Parent.nullable(),
  head: Count,
  historyCount: Count,
  lastSeq: Count,
  logId: z.string(),
  state: z.enum(CONVERSATION_STATES),
  lastAgent: z.string().nullable(),
  open: Count,
  openPermissions: Count,
  stranded: Stranded.nullable(),
  delayed: Delayed.nullable(),
  usage: Usage,
  createdAt: Time,
  updatedAt: Time,
}) satisfies z.ZodType<PublicConversation>;

const Remains = z.discriminatedUnion('what', [
  z.strictObject({ what: z.enum(['sandbox', 'directory']), where: z.string() }),
  z.strictObject({ what: z.literal('session'), where: z.string(), agent: z.string(), sessionId: z.string() }),
]) satisfies z.ZodType<RemainsValue>;

export const Erased = namedObject('Erased', {
  conversationId: z.string(),
  remains: z.array(Remains),
}) satisfies z.ZodType<ErasedValue>;

export const Lock = namedObject('Lock', { holder: z.string(), expiresIn: z.number() }) satisfies z.ZodType<PublicLock>;

const Moment = z.strictObject({ n: Count, at: Time });

export const Summary = namedObject('Summary', {
  conversationId: z.string(),
  key: z.string().nullable(),
  title: z.string(),
  contexts: Count,
  first: Moment.nullable(),
  last: Moment.nullable(),
  sessions: Count,
  changes: Count,
  open: Count,
  stranded: Stranded.nullable(),
  delayed: Delayed.nullable(),
  lock: Lock.nullable(),
  usage: Usage,
}) satisfies z.ZodType<PublicSummary>;

/** `n`: the turn; null: the words are in the title. */
export const SearchHit = namedObject('SearchHit', {
  conversationId: z.string(),
  key: z.string().nullable(),
  title: z.string(),
  n: Count.nullable(),
  snippet: z.string(),
}) satisfies z.ZodType<HitValue>;

/** `more`: how many changed files are left out. */
export const Changes = namedObject('Changes', {
  head: z.string().nullable(),
  files: z.array(
    namedObject('ChangedFile', {
      path: z.string(),
      change: z.enum(CHANGE_KINDS),
      added: Count.nullable(),
      removed: Count.nullable(),
      patch: z.string().nullable(),
    }),
  ),
  more: Count,
  worktree: z.exactOptional(z.strictObject({ directory: z.string(), branch: z.string(), unmerged: Count })),
}) satisfies z.ZodType<ChangesValue>;

export const Kept = namedObject('Kept', {
  branch: z.string(),
  commit: z.string().nullable(),
  merged: z.string().nullable(),
  leftOut: z.array(z.strictObject({ path: z.string(), bytes: Count })),
}) satisfies z.ZodType<KeptValue>;

/** `more`: there are others. */
export const Files = namedObject('Files', {
  paths: z.array(z.string()),
  more: z.boolean(),
}) satisfies z.ZodType<FilesValue>;

export const Directories = namedObject('Directories', {
  path: z.string(),
  above: z.string().nullable(),
  roots: z.array(z.string()),
  home: z.string(),
  repository: z
    .strictObject({ path: z.string(), branch: z.string().nullable(), noWorktree: z.string().nullable() })
    .nullable(),
  directories: z.array(
    z.strictObject({
      name: z.string(),
      path: z.string(),
      link: z.string().nullable(),
      outside: z.boolean(),
      repository: z.boolean(),
    }),
  ),
  more: z.boolean(),
}) satisfies z.ZodType<DirectoriesValue>;
