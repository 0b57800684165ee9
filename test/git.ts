import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Git without the settings of the person or the machine. */
export const GIT_ENV = {
  PATH: process.env.PATH ?? '',
  HOME: '/dev/null',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
};

/** Runs git, for a person of that name. Returns what it printed. */
export function git(cwd: string, ...args: string[]): string {
  const who = ['-c', 'user.name=Ann', '-c', 'user.email=ann@example.org'];
  const stdio = ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'];
  return execFileSync('git', [...who, ...args], { cwd, env: GIT_ENV, encoding: 'utf8', stdio }).trim();
}

/** A git repository with one commit, whose committer is known. */
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

/** Writes a file, with the folders that it is in. */
export function write(path: string, name: string, text: string): void {
  const file = join(path, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
