import * as z from 'zod';
import { After, Cursor, InConversation, Limit, Words } from '../parameters.ts';
import { named } from '../registry.ts';
import { Count, Id, RestoreOverride } from '../values/common.ts';
import { Conversation, Summary } from '../values/conversation.ts';
import { ConversationEvent } from '../values/event.ts';
import { ExportedConversation } from '../values/portable.ts';
import { ConversationView } from '../values/rest.ts';
import { Receipt, Session } from '../values/session.ts';
import { MEBIBYTE, type Operation } from './operation.ts';

const optional = z.exactOptional;
const Name = z.string().min(1).max(512);
const Directory = z.string().min(1).max(4_096);
const ChainHead = z.string().min(1).max(80);
const inOne = { params: InConversation } as const;

export const conversations = {
  listConversations: {
    method: 'GET',
    path: '/conversations',
    summary:
      'Lists conversations, most recently changed first. Pass `next` as `before` for the next page; it is null on the last one. ' +
      '`q`: only conversations with turns that contain all the words.',
    scope: 'read',
    query: z.strictObject({ limit: optional(Limit), before: optional(Cursor), q: optional(Words) }),
    status: 200,
    answer: named(
      'Conversations',
      z.strictObject({ conversations: z.array(Conversation), next: z.string().nullable() }),
    ),
  },
  ensureConversation: {
    method: 'POST',
    path: '/conversations',
    summary:
      'Finds the conversation by its key, or creates it. Refused when it exists with another directory, sandbox or restore setting.',
    scope: 'prompt',
    body: named(
      'NewConversation',
      z.strictObject({
        key: optional(Name),
        agent: optional(Id),
        title: optional(Name),
        cwd: optional(Directory),
        sandbox: optional(Name),
        restore: optional(RestoreOverride),
      }),
    ),
    begins: true,
    status: 200,
    answer: Conversation,
  },
  getConversation: {
    method: 'GET',
    path: '/conversations/{conversation}',
    summary: 'Returns one conversation, by its id or its key.',
    scope: 'read',
    ...inOne,
    status: 200,
    answer: Conversation,
  },
  renameConversation: {
    method: 'PATCH',
    path: '/conversations/{conversation}',
    summary: 'Changes the title of a conversation.',
    scope: 'prompt',
    ...inOne,
    body: named('NewTitle', z.strictObject({ title: Name })),
    status: 200,
    answer: Conversation,
  },
  eraseConversation: {
    method: 'DELETE',
    path: '/conversations/{conversation}',
    summary:
      'Deletes all that was said in a conversation. Refused while a turn is open. Its chain can still be verified.',
    scope: 'admin',
    ...inOne,
    status: 200,
    answer: named('Erased', z.strictObject({ erased: z.string() })),
  },
  summarise: {
    method: 'GET',
    path: '/conversations/{conversation}/summary',
    summary: 'Returns an overview of a conversation. As fast for long conversations as for short ones.',
    scope: 'read',
    ...inOne,
    status: 200,
    answer: Summary,
  },
  show: {
    method: 'GET',
    path: '/conversations/{conversation}/view',
    summary: 'Returns a whole conversation, up to 64 MiB: turns with their answers, sessions and receipts.',
    scope: 'read',
    ...inOne,
    status: 200,
    answer: ConversationView,
  },
  listSessions: {
    method: 'GET',
    path: '/conversations/{conversation}/sessions',
    summary: 'Returns the sessions of a conversation, most recently used first, and every receipt, up to 64 MiB.',
    scope: 'read',
    ...inOne,
    status: 200,
    answer: named('Lineage', z.strictObject({ sessions: z.array(Session), receipts: z.array(Receipt) })),
  },
  follow: {
    method: 'GET',
    path: '/conversations/{conversation}/events',
    summary:
      'Streams events after a number (`after`, or the header Last-Event-ID), without gaps or duplicates, and new ones as they come.',
    scope: 'read',
    ...inOne,
    query: z.strictObject({ after: optional(After) }),
    stream: true,
    status: 200,
    answer: ConversationEvent,
  },
  warm: {
    method: 'POST',
    path: '/conversations/{conversation}/warm',
    summary: 'Restores the session ahead of a prompt. The receipt is null when another process holds the conversation.',
    scope: 'prompt',
    ...inOne,
    body: named('WarmUp', z.strictObject({ agent: optional(Id), restore: optional(RestoreOverride) })),
    begins: true,
    status: 200,
    answer: named('Warmed', z.strictObject({ receipt: Receipt.nullable() })),
  },
  fork: {
    method: 'POST',
    path: '/conversations/{conversation}/fork',
    summary: 'Copies a conversation up to a turn into a new one; `turn` left out: up to the last one.',
    scope: 'prompt',
    ...inOne,
    body: named(
      'NewFork',
      z.strictObject({
        turn: optional(Count),
        key: optional(Name),
        title: optional(Name),
        cwd: optional(Directory),
      }),
    ),
    begins: true,
    status: 201,
    answer: Conversation,
  },
  exportConversation: {
    method: 'GET',
    path: '/conversations/{conversation}/export',
    summary: 'Exports a conversation as one JSON value, to be imported elsewhere.',
    scope: 'read',
    ...inOne,
    status: 200,
    answer: ExportedConversation,
  },
  importConversation: {
    method: 'POST',
    path: '/imports',
    summary: 'Creates a conversation from an exported one.',
    scope: 'prompt',
    body: named('Import', z.strictObject({ exported: z.unknown(), key: optional(Name), cwd: optional(Directory) })),
    mostBytes: 64 * MEBIBYTE,
    begins: true,
    status: 201,
    answer: Conversation,
  },
  verify: {
    method: 'GET',
    path: '/conversations/{conversation}/verify',
    summary:
      'Checks the chain of events: `broken` is the first number that does not fit, `head` the end of the chain. ' +
      '`kept` says whether the chain goes through the head that was given.',
    scope: 'read',
    ...inOne,
    query: z.strictObject({ head: optional(ChainHead) }),
    status: 200,
    answer: named(
      'Verified',
      z.strictObject({ broken: Count.nullable(), head: ChainHead, kept: optional(z.boolean()) }),
    ),
  },
} as const satisfies Record<string, Operation>;
