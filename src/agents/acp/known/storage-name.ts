import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { realPath } from '../../shared/paths.ts';
import { KNOWN_AGENTS, knownByItself } from './known.ts';

export interface StorageOf {
  /** The name under which it is known; null: only it itself says what it is. */
  readonly knownAs: string | null;
  /** What it calls itself. */
  readonly called: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/**
 * Agents keep their sessions in the home that they are given: the same agent with the same home has the same ones, whatever it is
 * called here and however it is started. Claude's are those that Claude has without this protocol, too, and go by the same name.
 */
export function storageName({ knownAs, called, command, env, cwd }: StorageOf): string {
  const home = env.HOME ?? homedir();
  const name = knownAs ?? knownByItself(called);
  const known = name === null ? undefined : KNOWN_AGENTS[name];
  if (known === undefined) return `acp:${called === 'unknown' ? command.join(' ') : called}:${realPath(home)}`;
  const [variable, folder] = known.storage;
  const named = variable === null ? undefined : env[variable];
  const place = realPath(resolve(cwd, named ?? join(home, folder)));
  return name === 'claude-code' ? `claude:${place}` : `acp:${name}:${place}`;
}
