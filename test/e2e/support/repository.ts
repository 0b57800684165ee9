import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Git without the settings of the person and the machine. */
export function git(cwd: string, ...args: string[]): string {
  const env = { PATH: process.env.PATH ?? '', HOME: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
  return execFileSync('git', args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
}

/** A git repository with one commit, whose committer is known. */
export function makeRepository(path: string): string {
  mkdirSync(path, { recursive: true });
  git(path, 'init', '--quiet', '--initial-branch', 'main');
  git(path, 'config', 'user.name', 'Ann');
  git(path, 'config', 'user.email', 'ann@example.org');
  writeFileSync(join(path, 'a.txt'), 'one\n');
  git(path, 'add', '--all');
  git(path, 'commit', '--quiet', '--message', 'first');
  return path;
}
