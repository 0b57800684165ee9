import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { realPath } from '../shared/real-path.ts';

/**
 * Agents keep their sessions in the home that they are given: the same agent with the same home has the same ones, however it is
 * called here. Claude's are those that Claude has without this protocol, too, and go by the same name.
 */
export function storageName(
  knownAs: string | null,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd: string,
): string {
  const home = env.HOME ?? homedir();
  if (knownAs === 'claude-code')
    return `claude:${realPath(resolve(cwd, env.CLAUDE_CONFIG_DIR ?? join(home, '.claude')))}`;
  return `acp:${knownAs ?? command.join(' ')}:${realPath(home)}`;
}
