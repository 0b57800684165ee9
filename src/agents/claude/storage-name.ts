import { realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type AgentEnvironment, configDir } from './transcript/locate.ts';

/**
 * Claudes with the same config directory have the same sessions, however they are run, configured and called: the id alone
 * names one in it. Which of its folders a session lies in does not matter, for ids are never given twice.
 */
export function storageName(env: AgentEnvironment, cwd: string): string {
  return `claude:${realPath(configDir(env, cwd))}`;
}

/** Its links resolved, as far as it is there: it has to have one name before Claude makes it and afterwards. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
}
