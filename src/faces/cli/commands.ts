import type { CommandModule } from './cli.ts';

interface CommandEntry {
  readonly summary: string;
  readonly load: () => Promise<CommandModule>;
  /** Works on this machine; a server cannot do it. */
  readonly isLocal?: boolean;
  /** Only programs call it; help and completion do not list it. */
  readonly isHidden?: boolean;
  /** Reads the other commands, so all are registered. */
  readonly needsOthers?: boolean;
}

/** Every command, in the order of `--help`. Its file is loaded when it is used, so that starting stays fast. */
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  send: { summary: 'send a prompt and show the answer', load: () => import('./commands/turns/send.ts') },
  chat: { summary: 'talk with an agent at the terminal', load: () => import('./commands/turns/chat.ts') },
  show: {
    summary: 'show a conversation with its turns, sessions and receipts',
    load: () => import('./commands/conversations/show.ts'),
  },
  list: { summary: 'list conversations, most recent first', load: () => import('./commands/conversations/list.ts') },
  summary: {
    summary: 'show a conversation at a glance',
    load: () => import('./commands/conversations/summary.ts'),
  },
  search: {
    summary: 'find conversations and turns by their words',
    load: () => import('./commands/conversations/search.ts'),
  },
  follow: {
    summary: 'show the events of a conversation as they happen',
    load: () => import('./commands/turns/follow.ts'),
  },
  cancel: {
    summary: 'stop a turn, or all open turns of a conversation',
    load: () => import('./commands/turns/cancel.ts'),
  },
  queue: {
    summary: 'list, edit, reorder and drop prompts that have not begun',
    load: () => import('./commands/waiting/queue.ts'),
  },
  pending: {
    summary: 'list answers that wait to be delivered',
    load: () => import('./commands/waiting/pending.ts'),
  },
  retry: { summary: 'send the prompt of an ended turn again', load: () => import('./commands/turns/retry.ts') },
  told: {
    summary: 'show exactly what the session of a turn was told',
    load: () => import('./commands/sessions/told.ts'),
  },
  sessions: {
    summary: 'list the sessions of a conversation, or of an agent',
    load: () => import('./commands/sessions/sessions.ts'),
  },
  kill: {
    summary: 'end the live sessions of a conversation; nothing is lost',
    load: () => import('./commands/sessions/kill.ts'),
  },
  move: {
    summary: 'continue a conversation here whose data home is gone',
    load: () => import('./commands/conversations/move.ts'),
  },
  rename: { summary: 'give a conversation another title', load: () => import('./commands/conversations/rename.ts') },
  pin: {
    summary: 'keep a conversation at the top of its project',
    load: async () => (await import('./commands/conversations/arrange.ts')).pin,
  },
  'put-away': {
    summary: 'leave a conversation out of lists until its next prompt',
    load: async () => (await import('./commands/conversations/arrange.ts')).putAway,
  },
  changes: {
    summary: 'show what the agent changed in its directory',
    load: () => import('./commands/agents/changes.ts'),
  },
  files: {
    summary: 'list files in the directory of a conversation',
    load: () => import('./commands/agents/files.ts'),
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
  export: {
    summary: 'write a conversation as JSON or Markdown',
    load: () => import('./commands/conversations/export.ts'),
  },
  import: { summary: 'read an exported conversation', load: () => import('./commands/conversations/import.ts') },
  task: { summary: 'let agents work on goals, unattended', load: () => import('./commands/tasks/task.ts') },
  erase: {
    summary: 'delete everything that was said in a conversation',
    load: () => import('./commands/conversations/erase.ts'),
  },
  archive: {
    summary: 'move a conversation out of the store, into a file',
    load: () => import('./commands/server/archive.ts'),
  },
  sandbox: {
    summary: 'list the places where agents work, and who works there',
    load: () => import('./commands/sandboxes/sandbox.ts'),
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
    summary: 'find what crashes left behind, and repair it',
    load: () => import('./commands/server/doctor.ts'),
    isLocal: true,
  },
  backup: {
    summary: 'write everything to one file, while a server runs',
    load: () => import('./commands/server/backup.ts'),
  },
  restore: {
    summary: 'replace the data of this data home with a backup',
    load: () => import('./commands/server/restore.ts'),
    isLocal: true,
  },
  store: {
    summary: 'copy everything to another store: PostgreSQL, or back',
    load: () => import('./commands/server/store.ts'),
    isLocal: true,
  },
  demo: {
    summary: 'see a conversation survive the loss of its session',
    load: () => import('./commands/demo/demo.ts'),
    isLocal: true,
  },
  completion: {
    summary: 'complete commands and names in your shell',
    load: () => import('./commands/shell/completion.ts'),
  },
  complete: {
    summary: 'what a shell asks for at a Tab',
    load: () => import('./commands/shell/answer-shell.ts'),
    isHidden: true,
    needsOthers: true,
  },
};

/** What a command waits for, as a terminal shows it while there is nothing else to see. Left out: it works. */
export const WAITS: Readonly<Record<string, string>> = {
  send: 'handing over the prompt …',
  retry: 'handing over the prompt …',
  show: 'reading the conversation …',
  list: 'reading conversations …',
  summary: 'reading the conversation …',
  search: 'searching …',
  follow: 'waiting for the next event …',
  cancel: 'waiting for the turn to stop …',
  queue: 'reading the queue …',
  sessions: 'reading sessions …',
  kill: 'ending the session …',
  move: 'moving the conversation …',
  rename: 'storing the title …',
  pin: 'pinning the conversation …',
  'put-away': 'putting the conversation away …',
  changes: 'comparing files …',
  files: 'looking for files …',
  fork: 'copying the conversation …',
  permissions: 'reading questions …',
  answer: 'handing over the answer …',
  export: 'reading the conversation …',
  import: 'storing the conversation …',
  task: 'waiting for the tasks …',
  erase: 'erasing …',
  archive: 'archiving …',
  sandbox: 'reading sandboxes …',
  usage: 'adding up …',
  agents: 'starting the agents to see whether you are logged in …',
  serve: 'starting the server …',
  link: 'asking the server …',
  keys: 'reading keys …',
  verify: 'checking the events …',
  doctor: 'examining the data home and its agents …',
  backup: 'copying the data …',
  restore: 'checking the backup …',
  store: 'copying the data …',
  demo: 'running the demo …',
};
