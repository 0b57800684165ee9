import { ClaudeRefusal, type ConnectRequest } from '../connection.ts';
import { forbiddenTools } from '../environment.ts';
import type { ClaudeOptions } from '../settings.ts';

/**
 * The command-line arguments of Claude. Secrets go through the environment alone: everybody on the machine can read arguments.
 *
 * Settings are given inline, on top of the user's, and no file is edited. Without `cleanupPeriodDays` any `claude -p` deletes
 * session files that are older than a month, also those of other conversations.
 */
export function argumentsFor(
  { how, model, noTools, env }: Pick<ConnectRequest, 'how' | 'model' | 'noTools' | 'env'>,
  { permissionMode, settingSources }: Pick<ClaudeOptions, 'permissionMode' | 'settingSources'>,
): string[] {
  return [
    '--print',
    ...['--output-format', 'stream-json', '--verbose', '--include-partial-messages'],
    ...['--input-format', 'stream-json', '--permission-prompt-tool', 'stdio'],
    ...['--settings', JSON.stringify({ cleanupPeriodDays: 36_500 })],
    ...(model === null ? [] : ['--model', model]),
    ...(permissionMode === undefined ? [] : ['--permission-mode', permissionMode]),
    ...(permissionMode === 'bypassPermissions' ? ['--allow-dangerously-skip-permissions'] : []),
    // Only the MCP servers of our own settings are started, not those named in the project's files.
    '--strict-mcp-config',
    ...['--disallowedTools', forbiddenTools(env).join(',')],
    ...(noTools ? ['--tools', '', '--setting-sources', ''] : sourceArguments(settingSources)),
    ...sessionArguments(how),
  ];
}

function sourceArguments(sources: ClaudeOptions['settingSources']): string[] {
  return sources === undefined ? [] : ['--setting-sources', sources.join(',')];
}

/** `--session-id` opens an id that we have recorded, once; afterwards it is resumed (R1). */
function sessionArguments(how: ConnectRequest['how']): string[] {
  if (how.kind === 'new') return ['--session-id', how.id];
  const { id, rewind } = how;
  return ['--resume', id, ...(rewind ? ['--resume-session-at', rewind.at, '--resume-drops-turn', rewind.drops] : [])];
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Throws a `ClaudeRefusal` for anything but a UUID: Claude would take it for a *title*, and resume a session of that title. */
export function checkId({ kind, id }: ConnectRequest['how']): void {
  if (UUID.test(id)) return;
  const message = `${JSON.stringify(id)} is not a session id of Claude`;
  throw new ClaudeRefusal(kind === 'resume' ? 'not_found' : 'refused', message);
}
