import type { OPERATIONS, OperationName } from '../../wire/operations.ts';

type Table = typeof OPERATIONS;

/**
 * Method and path of each operation, the same as in the table of the wire, or this does not compile. Repeated here because that
 * table loads the schema library, which browsers and short commands do not need.
 */
export const ROUTES: {
  readonly [N in OperationName]: { readonly method: Table[N]['method']; readonly path: Table[N]['path'] };
} = {
  listConversations: { method: 'GET', path: '/conversations' },
  ensureConversation: { method: 'POST', path: '/conversations' },
  getConversation: { method: 'GET', path: '/conversations/{conversation}' },
  renameConversation: { method: 'PATCH', path: '/conversations/{conversation}' },
  eraseConversation: { method: 'DELETE', path: '/conversations/{conversation}' },
  summarise: { method: 'GET', path: '/conversations/{conversation}/summary' },
  show: { method: 'GET', path: '/conversations/{conversation}/view' },
  listSessions: { method: 'GET', path: '/conversations/{conversation}/sessions' },
  follow: { method: 'GET', path: '/conversations/{conversation}/events' },
  warm: { method: 'POST', path: '/conversations/{conversation}/warm' },
  fork: { method: 'POST', path: '/conversations/{conversation}/fork' },
  exportConversation: { method: 'GET', path: '/conversations/{conversation}/export' },
  importConversation: { method: 'POST', path: '/imports' },
  verify: { method: 'GET', path: '/conversations/{conversation}/verify' },
  submit: { method: 'POST', path: '/conversations/{conversation}/turns' },
  listTurns: { method: 'GET', path: '/conversations/{conversation}/turns' },
  getTurn: { method: 'GET', path: '/turns/{turn}' },
  answerOf: { method: 'GET', path: '/turns/{turn}/answer' },
  cancel: { method: 'POST', path: '/turns/{turn}/cancel' },
  retry: { method: 'POST', path: '/turns/{turn}/retry' },
  listTasks: { method: 'GET', path: '/tasks' },
  addTasks: { method: 'POST', path: '/tasks' },
  followTasks: { method: 'GET', path: '/tasks/events' },
  taskUsage: { method: 'GET', path: '/tasks/usage' },
  getTask: { method: 'GET', path: '/tasks/{task}' },
  reportTask: { method: 'GET', path: '/tasks/{task}/report' },
  cancelTask: { method: 'POST', path: '/tasks/{task}/cancel' },
  retryTask: { method: 'POST', path: '/tasks/{task}/retry' },
  listPermissions: { method: 'GET', path: '/permissions' },
  getPermission: { method: 'GET', path: '/permissions/{permission}' },
  answer: { method: 'POST', path: '/permissions/{permission}' },
  whoAmI: { method: 'GET', path: '/me' },
  newLink: { method: 'POST', path: '/links' },
  hints: { method: 'GET', path: '/events' },
  search: { method: 'GET', path: '/search' },
  usage: { method: 'GET', path: '/usage' },
  listAgents: { method: 'GET', path: '/agents' },
};
