import type { CommandModule } from './cli.ts';

interface CommandEntry {
  readonly summary: string;
  readonly load: () => Promise<CommandModule>;
  /** Works on this machine; a server cannot do it. */
  readonly isLocal?: boolean;
}

/** Every command, in the order of `--help`. Its file is loaded when it is used, so that starting stays fast. */
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  send: { summary: 'send a prompt and show the answer', load: () => import('./commands/turns/send.ts') },
  show: {
    summary: 'show a conversation with its turns, sessions and receipts',
    load: () => import('./commands/conversations/show.ts'),
  },
  list: { summary: 'list conversations, most recent first', load: () => import('./commands/conversations/list.ts') },
  summary: {
    summary: 'show a conversation at a glance',
    load: () => import('./commands/conversations/summary.ts'),
  },
  search: { summary: 'find turns by the words in them', load: () => import('./commands/conversations/search.ts') },
  follow: {
    summary: 'show the events of a conversation as they happen',
    load: () => import('./commands/turns/follow.ts'),
  },
  cancel: {
    summary: 'stop a turn, or all open turns of a conversation',
    load: () => import('./commands/turns/cancel.ts'),
  },
  retry: { summary: 'send the prompt of an ended turn again', load: () => import('./commands/turns/retry.ts') },
  sessions: {
    summary: 'list the sessions of a conversation, or of an agent',
    load: () => import('./commands/conversations/sessions.ts'),
  },
  fork: {
    summary: 'copy a conversation up to a turn, to continue from there',
    load: () => import('./commands/conversations/fork.ts'),
  },
  permissions: {
    summary: 'list questions of agents that wait for an answer',
    load: () => import('./commands/turns/permissions.ts'),
  },
  answer: { summary: 'answer a question of an agent', load: () => import('./commands/turns/answer.ts') },
  export: { summary: 'write a conversation as JSON', load: () => import('./commands/conversations/export.ts') },
  import: { summary: 'read an exported conversation', load: () => import('./commands/conversations/import.ts') },
  task: { summary: 'let agents work on goals, unattended', load: () => import('./commands/tasks/task.ts') },
  erase: {
    summary: 'delete everything that was said in a conversation',
    load: () => import('./commands/conversations/erase.ts'),
  },
  usage: { summary: 'show usage by day and agent', load: () => import('./commands/agents/usage.ts') },
  agents: {
    summary: 'list agents and what they can do, or install one',
    load: () => import('./commands/agents/agents.ts'),
  },
  serve: {
    summary: 'serve all conversations over HTTP, and run their turns',
    load: () => import('./commands/server/serve.ts'),
    isLocal: true,
  },
  link: { summary: 'print a link that signs a browser in, once', load: () => import('./commands/server/link.ts') },
  keys: {
    summary: 'create, list and revoke keys to the server',
    load: () => import('./commands/server/keys.ts'),
    isLocal: true,
  },
  verify: {
    summary: 'check that no event of a conversation was changed',
    load: () => import('./commands/conversations/verify.ts'),
  },
  doctor: {
    summary: 'find what crashes left over, and repair it',
    load: () => import('./commands/server/doctor.ts'),
    isLocal: true,
  },
  backup: {
    summary: 'write everything to one file, while a server runs',
    load: () => import('./commands/server/backup.ts'),
  },
  restore: {
    summary: 'make a backup the data of this data home',
    load: () => import('./commands/server/restore.ts'),
    isLocal: true,
  },
  demo: {
    summary: 'see a conversation survive the loss of its session',
    load: () => import('./commands/demo/demo.ts'),
    isLocal: true,
  },
};
