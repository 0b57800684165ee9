import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { DemoParts } from '../../../ports/demo.ts';

export interface Loss {
  readonly sessionId: string;
  readonly pid: number;
  readonly files: number;
}

/** The worst that happens to a session: its process is killed and its files are gone. Files of others are left alone. */
export async function loseSession({ engine, pidOf, sessionFiles }: DemoParts, key: string): Promise<Loss> {
  const [session] = await engine.sessions(key);
  const pid = session === undefined ? null : await pidOf(session.id);
  if (session === undefined || pid === null) throw new Error('The session has no process to kill.');
  process.kill(pid, 'SIGKILL');
  while (isAlive(pid)) await delay(5);
  const files = (await readdir(sessionFiles)).filter((name) => name.startsWith(session.id));
  for (const file of files) await rm(join(sessionFiles, file), { recursive: true });
  return { sessionId: session.id, pid, files: files.length };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
