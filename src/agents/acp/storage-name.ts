import { realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';

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

/** Its links resolved, as far as it is there: it has to have one name before an agent makes it and afterwards. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
}
