/** The columns that hold JSON. A database can read a row of which we cannot: its own check does not notice it. */
export const JSON_OF_CONVERSATIONS = {
  conversations: ['restore', 'limits', 'parent', 'choices'],
  turns: ['prompt', 'options', 'sent', 'failure', 'usage'],
  records: ['body'],
  events: ['payload'],
  sessions: ['process', 'usage', 'omitted'],
  receipts: ['body'],
  permissions: ['tool_call', 'options'],
  totals: ['usage', 'day_spent'],
  requeues: ['result'],
};
export const JSON_OF_OTHERS = {
  contents: ['body'],
  workers: ['process', 'takes'],
  usage_days: ['usage'],
  tasks: ['spec', 'progress', 'process', 'gate'],
  task_events: ['payload'],
  task_usage: ['usage'],
  keys: ['scopes'],
  sign_in_links: ['scopes'],
  sandboxes: ['setup', 'disk', 'holder'],
};
