import { forbiddenTools } from '../by-itself.ts';
import { ClaudeRefusal, type ConnectRequest } from '../connection.ts';
import type { ClaudeOptions } from '../options.ts';
import type { Abilities } from './abilities.ts';

/**
 * What Claude is started with. Secrets come by the environment alone: everybody on the machine can read arguments.
 *
 * The settings are given inline, on top of whatever the person has, and no file is edited. Without `cleanupPeriodDays` any
 * `claude -p` deletes session files that are older than a month, of other conversations too.
 */
export function argumentsFor(
  { how, model, noTools, env }: Pick<ConnectRequest, 'how' | 'model' | 'noTools' | 'env'>,
  { permissionMode, settingSources }: Pick<ClaudeOptions, 'permissionMode' | 'settingSources'>,
  can: Abilities,
): string[] {
  // One that ends with its prompt is woken by nothing.
  const forbidden = can.warm ? forbiddenTools(env) : [];
  return [
    '--print',
    ...['--output-format', 'stream-json', '--verbose'],
    ...(can.warm ? ['--input-format', 'stream-json', '--permission-prompt-tool', 'stdio'] : []),
    ...(can.partialMessages ? ['--include-partial-messages'] : []),
    ...(can.settings ? ['--settings', JSON.stringify({ cleanupPeriodDays: 36_500 })] : []),
    ...(model === null ? [] : ['--model', model]),
    ...(permissionMode === undefined ? [] : ['--permission-mode', permissionMode]),
    ...(permissionMode === 'bypassPermissions' ? ['--allow-dangerously-skip-permissions'] : []),
    // Servers that the work's own files name are not started without being asked for.
    ...(can.strictMcp ? ['--strict-mcp-config'] : []),
    ...(forbidden.length > 0 ? ['--disallowedTools', forbidden.join(',')] : []),
    ...(noTools ? ['--tools', '', '--setting-sources', ''] : sourceArguments(settingSources)),
    ...sessionArguments(how, can),
  ];
}

function sourceArguments(sources: ClaudeOptions['settingSources']): string[] {
  return sources === undefined ? [] : ['--setting-sources', sources.join(',')];
}

/** `--session-id` opens an id that we have recorded, once; ever after it is resumed. */
function sessionArguments(how: ConnectRequest['how'], can: Abilities): string[] {
  if (how.kind === 'resume') {
    const { id, rewind } = how;
    return ['--resume', id, ...(rewind ? ['--resume-session-at', rewind.at, '--resume-drops-turn', rewind.drops] : [])];
  }
  return can.assignsIds ? ['--session-id', how.id] : [];
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Throws a `ClaudeRefusal` for what this version cannot do, before anything is started. */
export function checkRequest({ how, noTools }: Pick<ConnectRequest, 'how' | 'noTools'>, can: Abilities): void {
  // Anything else is taken for the *title* of a session, and a session of that title would be resumed.
  if (!UUID.test(how.id)) {
    const message = `${JSON.stringify(how.id)} cannot be the id of a session of Claude's`;
    throw new ClaudeRefusal(how.kind === 'resume' ? 'not_found' : 'refused', message);
  }
  if (noTools && !can.noTools)
    throw new ClaudeRefusal('refused', `Claude ${can.version} cannot be started without tools`);
}
