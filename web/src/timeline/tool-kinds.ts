import type { ToolPart } from '../../../src/core/turn/record.ts';

/** What a tool does, whatever its agent calls it. */
export type Doing = 'read' | 'change' | 'search' | 'command' | 'fetch' | 'helper' | 'plan' | 'other';

/** The kinds of the Agent Client Protocol. */
const OF_KIND: Readonly<Record<string, Doing>> = {
  read: 'read',
  edit: 'change',
  delete: 'change',
  move: 'change',
  search: 'search',
  execute: 'command',
  fetch: 'fetch',
};

/** Names of tools, without signs and in lower case. Agents report many of them without a kind. */
const OF_NAME: readonly (readonly [Doing, readonly string[]])[] = [
  ['read', ['read', 'readfile', 'readmanyfiles', 'notebookread', 'view', 'open', 'viewimage']],
  [
    'search',
    ['grep', 'glob', 'ls', 'listdirectory', 'searchfilecontent', 'toolsearch', 'filesearch', 'codebasesearch'],
  ],
  [
    'change',
    ['edit', 'multiedit', 'write', 'writefile', 'replace', 'notebookedit', 'applypatch', 'strreplace', 'patch'],
  ],
  ['command', ['bash', 'bashoutput', 'killshell', 'shell', 'localshell', 'execcommand', 'runshellcommand', 'terminal']],
  ['fetch', ['webfetch', 'websearch', 'googlewebsearch', 'fetch']],
  ['helper', ['task', 'agent', 'subagent', 'spawnagent']],
  ['plan', ['todowrite', 'todoread', 'updateplan', 'exitplanmode', 'plan']],
];

export function doingOf({ kind, name }: Pick<ToolPart, 'kind' | 'name'>): Doing {
  const plain = name.toLowerCase().replaceAll(/[^a-z]/g, '');
  const byName = OF_NAME.find(([, names]) => names.includes(plain))?.[0];
  return OF_KIND[kind] ?? byName ?? 'other';
}
