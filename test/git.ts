import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Keeps git from reading the settings of the user and the machine. */
export const GIT_ENV = {
  PATH: process.env.PATH ?? '',
  HOME: '/dev/null',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
};

/** Runs git as the user Ann. Returns what it printed. */
export function git(cwd: string, ...args: string[]): string {
  const who = ['-c', 'user.name=Ann', '-c', 'user.email=ann@example.org'];
  const stdio = ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'];
  return execFileSync('git', [...who, ...args], { cwd, env: GIT_ENV, encoding: 'utf8', stdio }).trim();
}

/** Makes a git repository with one commit, in which a user is configured. */
export function makeRepository(path: string): string {
  mkdirSync(path, { recursive: true });
  git(path, 'init', '--quiet', '--initial-branch', 'main');
  git(path, 'config', 'user.name', 'Ann');
  git(path, 'config', 'user.email', 'ann@example.org');
  write(path, 'a.txt', 'one\n');
  git(path, 'add', '--all');
  git(path, 'commit', '--quiet', '--message', 'first');
  return path;
}

/** Writes a file and creates its parent folders. */
export function write(path: string, name: string, text: string): void {
  const file = join(path, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
