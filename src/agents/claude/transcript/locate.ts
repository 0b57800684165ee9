import { join, resolve } from 'node:path';
import type { Folder, OpenSandbox } from '../../../ports/sandbox.ts';
import { Transcript } from './file.ts';

/*
 * Where Claude keeps a session: `<config dir>/projects/<name of the working directory>/<session id>.jsonl`.
 * All of this was tested with 2.1.325 (test/agents/claude/transcript/transcript.test.ts): with a wrong path, a session would not be found.
 */

/** The environment that the agent is started with in its sandbox, `HOME` included; not ours. */
type AgentEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * `CLAUDE_CONFIG_DIR`, else `.claude` in the agent's home. A relative path starts at the working directory; an empty one is the
 * working directory itself.
 */
export function configDir(env: AgentEnvironment, cwd: string): string {
  const dir = env.CLAUDE_CONFIG_DIR ?? join(env.HOME ?? '', '.claude');
  return resolve(cwd, dir).normalize('NFC');
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

/** The folder with the sessions of a working directory, whose links are resolved. Unlike the config directory, its name is not normalized. */
export function projectDir(env: AgentEnvironment, cwd: string): string {
  return join(configDir(env, cwd), folderOf(env, cwd));
}

/** The same, relative to the config directory. */
function folderOf(env: AgentEnvironment, cwd: string): string {
  return `projects/${assignedName(env) ?? slugOf(cwd)}`;
}

/** Where the Claude of a sandbox keeps the sessions of its working directory. */
export interface SessionStorage {
  /**
   * Claudes with the same config directory have the same sessions, whatever their adapter, settings and name. The folder of a session
   * does not matter, because ids are unique.
   */
  readonly name: string;
  /** The config directory. */
  readonly folder: Folder;
  /** In that, the folder for the files of new sessions. */
  readonly path: string;
  /**
   * The file of a session, whether it exists or not; null: not a valid session id. Claude resumes a session only from the working
   * directory it belongs to.
   */
  fileOf(id: string): Transcript | null;
}

/** `env`: what Claude is started with. The config directory is trusted; what is in it is not. */
export async function storageIn(sandbox: OpenSandbox, env: Readonly<Record<string, string>>): Promise<SessionStorage> {
  const whole = { HOME: sandbox.home, ...env };
  const folder = await sandbox.folder(configDir(whole, sandbox.work));
  const path = folderOf(whole, sandbox.work);
  const others = path.length > LONGEST_FOLDER ? await foldersLike(folder, path) : [];
  // The same path on another machine is another folder.
  const host = sandbox.host === 'local' ? '' : `${sandbox.host}:`;
  return {
    name: `claude:${host}${folder.path}`,
    folder,
    path,
    fileOf(id) {
      if (!SESSION_ID.test(id)) return null;
      const fileIn = (dir: string) => `${dir}/${id}.jsonl`;
      return new Transcript(folder, fileIn(path), others.map(fileIn));
    },
  };
}

/** No dots and slashes, so that an id cannot lead to another path. */
const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

/** The name of the folder that the environment sets. Claude ignores it without `CLAUDE_CONFIG_DIR`, and if it is malformed. */
function assignedName(env: AgentEnvironment): string | null {
  const name = env.CLAUDE_CODE_PROJECT_DIR_NAME;
  if (!env.CLAUDE_CONFIG_DIR || !name || !/^[A-Za-z0-9_-]{1,64}$/.test(name)) return null;
  return /^(?:con|prn|aux|nul|com\d|lpt\d)$/i.test(name) ? null : name;
}

const LONGEST_FOLDER = 'projects/'.length + LONGEST_SLUG;

/** Folders for the same long name, whose hash another version of Claude computed differently. */
async function foldersLike(folder: Folder, path: string): Promise<string[]> {
  const prefix = path.slice('projects/'.length, LONGEST_FOLDER + 1);
  const entries = (await folder.list('projects')) ?? [];
  const names = entries.filter(({ kind, name }) => kind === 'folder' && name.startsWith(prefix));
  return names.map(({ name }) => `projects/${name}`).filter((other) => other !== path);
}
