// Installs an agent into its own folder, separate from the packages of the project and of the other agents.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ACP_AGENTS } from './agents.ts';

const LIMIT_MS = 300_000;

export const folderOf = (name: string) => join(import.meta.dirname, '.installed', name);
export const binOf = (name: string) => join(folderOf(name), 'node_modules', '.bin');

/** Null: the right versions are installed. Otherwise the reason why not, in one line. */
export function install(name: string): string | null {
  const { packages = {}, command = [''] } = ACP_AGENTS[name] ?? {};
  const folder = folderOf(name);
  if (isInstalled(folder, packages)) return null;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true }));
  const wanted = Object.entries(packages).map(([id, version]) => `${id}@${version}`);
  const npm = spawnSync('npm', ['install', '--save-exact', '--no-audit', '--no-fund', '--loglevel=error', ...wanted], {
    cwd: folder,
    encoding: 'utf8',
    timeout: LIMIT_MS,
  });
  if (npm.error) return `npm: ${npm.error.message}`;
  if (npm.status !== 0) return reasonIn(npm.stderr) ?? `npm ended with ${npm.status ?? npm.signal}`;
  // npm ignores an optional package that it could not download. Then the program of the agent is missing.
  return existsSync(join(binOf(name), command[0])) ? null : `there is no program ${command[0]} in ${wanted.join(' ')}`;
}

function isInstalled(folder: string, packages: Readonly<Record<string, string>>): boolean {
  return Object.entries(packages).every(([id, version]) => {
    try {
      const file = join(folder, 'node_modules', id, 'package.json');
      return JSON.parse(readFileSync(file, 'utf8')).version === version;
    } catch {
      return false; // absent or cut short: both mean "install"
    }
  });
}

/** The line of npm with the reason of the failure. */
function reasonIn(stderr: string): string | null {
  const lines = stderr
    .split('\n')
    .flatMap((line) => /^npm error (?!code |A complete log)(?:notarget )?(.+)$/.exec(line)?.[1] ?? []);
  return lines[0] ?? null;
}
