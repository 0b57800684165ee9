import { isObject } from '../../../core/content.ts';
import type { ToolCallFields } from '../../../core/update.ts';

/** What Claude's tools do, in the words of the Agent Client Protocol. */
const KINDS: Readonly<Record<string, string>> = {
  Read: 'read',
  NotebookRead: 'read',
  LS: 'read',
  Edit: 'edit',
  MultiEdit: 'edit',
  Write: 'edit',
  NotebookEdit: 'edit',
  Bash: 'execute',
  BashOutput: 'execute',
  KillShell: 'execute',
  Glob: 'search',
  Grep: 'search',
  ToolSearch: 'search',
  WebFetch: 'fetch',
  WebSearch: 'fetch',
  Agent: 'think',
  Task: 'think',
  TodoWrite: 'think',
  ExitPlanMode: 'switch_mode',
};

export function toolKind(name: string): string {
  return Object.hasOwn(KINDS, name) ? (KINDS[name] ?? 'other') : 'other';
}

const PATHS = ['file_path', 'notebook_path', 'path'];

/**
 * A call of one of Claude's tools. The title is the tool's own name: records are made of it, and a session that is
 * synthesised from them calls the tool by it.
 */
export function toolCallFields(id: string, name: string, input: unknown): ToolCallFields {
  const path = isObject(input) ? PATHS.map((field) => input[field]).find((value) => typeof value === 'string') : null;
  return {
    toolCallId: id,
    title: name,
    kind: toolKind(name),
    ...(typeof path === 'string' ? { locations: [{ path }] } : {}),
    rawInput: input ?? {},
  };
}
