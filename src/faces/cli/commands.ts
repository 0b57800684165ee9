import type { CommandModule } from './cli.ts';

/** Every command, in the order of `--help`. Its file is loaded when it is used: starting stays cheap. */
export const COMMANDS: Readonly<
  Record<
    string,
    {
      readonly summary: string;
      readonly load: () => Promise<CommandModule>;
      /** Is about this machine, and not for a server to do. */
      readonly isLocal?: boolean;
    }
  >
> = {
  send: { summary: 'send a prompt, and show the answer', load: () => import('./commands/send.ts') },
  show: {
    summary: 'show a whole conversation, with its sessions and receipts',
    load: () => import('./commands/show.ts'),
  },
  list: { summary: 'list conversations, the most recent first', load: () => import('./commands/list.ts') },
  summary: { summary: 'show a conversation at a glance', load: () => import('./commands/summary.ts') },
  search: { summary: 'find turns by the words in them', load: () => import('./commands/search.ts') },
  follow: { summary: 'show what happens in a conversation, as it happens', load: () => import('./commands/follow.ts') },
  cancel: { summary: 'stop a turn, or all open turns of a conversation', load: () => import('./commands/cancel.ts') },
  retry: { summary: 'send the prompt of an ended turn again', load: () => import('./commands/retry.ts') },
  sessions: { summary: 'show the sessions a conversation has lived in', load: () => import('./commands/sessions.ts') },
  fork: { summary: 'go on from a turn in a conversation of its own', load: () => import('./commands/fork.ts') },
  permissions: { summary: 'list questions that wait for an answer', load: () => import('./commands/permissions.ts') },
  answer: { summary: 'answer such a question', load: () => import('./commands/answer.ts') },
  export: { summary: 'write a conversation as JSON', load: () => import('./commands/export.ts') },
  import: { summary: 'read a conversation that was exported', load: () => import('./commands/import.ts') },
  task: { summary: 'have agents work on goals, unattended', load: () => import('./commands/task.ts') },
  erase: { summary: 'forget all that was said in a conversation', load: () => import('./commands/erase.ts') },
  usage: { summary: 'show what was used, by day and agent', load: () => import('./commands/usage.ts') },
  agents: {
    summary: 'list agents and what they can do, or install one',
    load: () => import('./commands/agents.ts'),
  },
  serve: {
    summary: 'serve every conversation over HTTP, and run their turns',
    load: () => import('./commands/serve.ts'),
    isLocal: true,
  },
  link: { summary: 'print a link that signs a browser in, once', load: () => import('./commands/link.ts') },
  keys: {
    summary: 'make, list and revoke keys to the server',
    load: () => import('./commands/keys.ts'),
    isLocal: true,
  },
  verify: { summary: 'check that no event of a conversation was changed', load: () => import('./commands/verify.ts') },
  doctor: {
    summary: 'find what crashes have left over, and repair it',
    load: () => import('./commands/doctor.ts'),
    isLocal: true,
  },
  demo: {
    summary: 'see a conversation survive the loss of its session',
    load: () => import('./commands/demo.ts'),
    isLocal: true,
  },
};
