/**
 * Method and path of each operation. Paths are matched in this order. In a file of its own because `operations.ts` loads the
 * schema library, which browsers and short commands do not need.
 */
export const ROUTES = {
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
  listPermissions: { method: 'GET', path: '/permissions' },
  getPermission: { method: 'GET', path: '/permissions/{permission}' },
  answer: { method: 'POST', path: '/permissions/{permission}' },
  listTasks: { method: 'GET', path: '/tasks' },
  addTasks: { method: 'POST', path: '/tasks' },
  followTasks: { method: 'GET', path: '/tasks/events' },
  taskUsage: { method: 'GET', path: '/tasks/usage' },
  getTask: { method: 'GET', path: '/tasks/{task}' },
  reportTask: { method: 'GET', path: '/tasks/{task}/report' },
  cancelTask: { method: 'POST', path: '/tasks/{task}/cancel' },
  retryTask: { method: 'POST', path: '/tasks/{task}/retry' },
  whoAmI: { method: 'GET', path: '/me' },
  getHealth: { method: 'GET', path: '/health' },
  newLink: { method: 'POST', path: '/links' },
  hints: { method: 'GET', path: '/events' },
  search: { method: 'GET', path: '/search' },
  usage: { method: 'GET', path: '/usage' },
  listAgents: { method: 'GET', path: '/agents' },
} as const;

export type OperationName = keyof typeof ROUTES;

/** Parameters in the path: each is an id, a key or a name. No path has more than one. */
export type ParamsOf<N extends OperationName> = (typeof ROUTES)[N]['path'] extends `${string}{${infer Name}}${string}`
  ? { readonly [P in Name]: string }
  : Record<never, never>;
