import type { Cli } from './cli.ts';
import { DONE } from './exit-codes.ts';
import { notThroughServer } from './not-through-server.ts';
import { styled } from './output.ts';
import { oneLine } from './terminal-text.ts';
import { time } from './time.ts';

const TITLE_SHOWN = 80;

/** `sessions --agent NAME`: what an agent itself has of a directory, and what `send --session` could go on with. */
export async function nativeSessions(
  agent: string,
  cwd: string,
  { parts, options, output, exitWith }: Cli,
): Promise<void> {
  if (options.server !== undefined) throw notThroughServer('sessions --agent');
  const sessions = await parts.nativeSessions(options, agent, cwd);
  for (const session of sessions.toSorted((a, b) => (a.updatedAt ?? 0) - (b.updatedAt ?? 0))) {
    if (output.json) output.value({ agent, cwd, ...session });
    else {
      const when = session.updatedAt === null ? '' : `  ${time(session.updatedAt)}`;
      output.line(styled('bold', oneLine(session.id)), when, `  ${oneLine(session.title ?? '').slice(0, TITLE_SHOWN)}`);
    }
  }
  if (sessions.length === 0) output.note(`${oneLine(agent)} has no session of ${oneLine(cwd)}.`);
  exitWith(DONE);
}
