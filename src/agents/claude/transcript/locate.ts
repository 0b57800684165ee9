import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { realPath } from '../../shared/paths.ts';

/*
 * Where Claude keeps a session: `<config dir>/projects/<name of the working directory>/<session id>.jsonl`.
 * All of this was tested with 2.1.325 (test/agents/claude-transcript.test.ts): with a wrong path a session seems not to exist.
 */

/** The environment that the agent is started with, not ours. */
type AgentEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * `CLAUDE_CONFIG_DIR`, else `.claude` in the agent's home. A relative path starts at the working directory; an empty one is the
 * working directory itself.
 */
export function configDir(env: AgentEnvironment, cwd: string): string {
  const dir = env.CLAUDE_CONFIG_DIR ?? join(env.HOME || homedir(), '.claude');
  return resolve(cwd, dir).normalize('NFC');
}

/**
 * Claudes with the same config directory have the same sessions, whatever their adapter, settings and name. The folder of a
 * session does not matter, because ids are unique.
 */
export function storageName(env: AgentEnvironment, cwd: string): string {
  return `claude:${realPath(configDir(env, cwd))}`;
}

const LONGEST_SLUG = 200;

/**
 * The folder name of a working directory whose links are resolved: a dash for every UTF-16 unit that is not an ASCII letter or
 * digit. A name longer than 200 is cut there, and the hash of the *whole directory*, not of the name, is appended.
 */
export function slugOf(directory: string): string {
  const slug = directory.replaceAll(/[^a-zA-Z0-9]/g, '-');
  return slug.length <= LONGEST_SLUG ? slug : `${slug.slice(0, LONGEST_SLUG)}-${hashOf(directory)}`;
}

/** Java's `hashCode` (31 × hash + code unit, signed 32 bits), its absolute value in base 36. */
function hashOf(text: string): string {
  let hash = 0;
  for (let i = 0; i < text.length; i += 1) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return Math.abs(hash).toString(36);
}

/** The folder that holds the sessions of a working directory. Unlike the config directory, its name is not normalized. */
export function projectDir(env: AgentEnvironment, cwd: string): string {
  return join(configDir(env, cwd), 'projects', assignedName(env) ?? slugOf(realPath(cwd)));
}

/**
 * The file of a session, whether it exists or not; null: not a valid session id. Claude resumes a session only from the working
 * directory it belongs to, so `cwd` is the one in which the agent will be started.
 */
export function transcriptFile(env: AgentEnvironment, cwd: string, id: string): string | null {
  if (!SESSION_ID.test(id)) return null;
  const dir = projectDir(env, cwd);
  const file = join(dir, `${id}.jsonl`);
  return existsSync(file) ? file : (elsewhere(env, cwd, id) ?? file);
}

/** No dots and slashes, so that an id cannot lead to another path. */
const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

/** Claude takes the name only together with `CLAUDE_CONFIG_DIR`. Without it, and when malformed, it is ignored. */
function assignedName(env: AgentEnvironment): string | null {
  const name = env.CLAUDE_CODE_PROJECT_DIR_NAME;
  if (!env.CLAUDE_CONFIG_DIR || !name || !/^[A-Za-z0-9_-]{1,64}$/.test(name)) return null;
  return /^(?:con|prn|aux|nul|com\d|lpt\d)$/i.test(name) ? null : name;
}

/** For a long name whose hash another version computed differently: searched by what comes before the hash, and by the id. */
function elsewhere(env: AgentEnvironment, cwd: string, id: string): string | null {
  const slug = slugOf(realPath(cwd));
  if (assignedName(env) !== null || slug.length <= LONGEST_SLUG) return null;
  const projects = join(configDir(env, cwd), 'projects');
  const prefix = slug.slice(0, LONGEST_SLUG + 1);
  const files = namesIn(projects)
    .filter((name) => name.startsWith(prefix))
    .map((name) => join(projects, name, `${id}.jsonl`))
    .filter((file) => existsSync(file));
  // With two candidates we would have to guess, and the session of another directory is worse than none.
  return files.length === 1 ? (files[0] ?? null) : null;
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
