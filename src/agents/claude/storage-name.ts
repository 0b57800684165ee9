import { realPath } from '../shared/real-path.ts';
import { type AgentEnvironment, configDir } from './transcript/locate.ts';

/**
 * Claudes with the same config directory have the same sessions, however they are run, configured and called: the id alone
 * names one in it. Which of its folders a session lies in does not matter, for ids are never given twice.
 */
export function storageName(env: AgentEnvironment, cwd: string): string {
  return `claude:${realPath(configDir(env, cwd))}`;
}
