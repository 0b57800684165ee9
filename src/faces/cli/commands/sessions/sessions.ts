import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import type { PublicSession } from '../../../../core/public/session.ts';
import { addHelp, type Cli, notThroughServer } from '../../cli.ts';
import { directory } from '../../input.ts';
import { time } from '../../lines.ts';
import { styled } from '../../output.ts';
import { cutTo, oneLine } from '../../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('[key]', 'the conversation: its key or id')
    .option('--agent <agent>', "list the agent's own sessions instead")
    .option('--cwd <dir>', 'with --agent: the sessions of this directory (default: the current one)', directory)
    .action((key: string | undefined, flags: { agent?: string; cwd?: string }) => sessions(key, flags, cli));
  addHelp(command, {
    about:
      "The ids are the agents' own. A session is a cache of the conversation: it has the turns up to the number shown. " +
      'With --agent, it lists all sessions that the agent has, also those of other programs. To continue in one of them, use ' +
      '"throughline send KEY PROMPT --session ID --cwd DIR".',
    examples: [
      'throughline sessions notes',
      'throughline sessions --agent claude --cwd .',
      'throughline sessions notes --json | jq -r \'select(.state == "live").id\'',
    ],
  });
}

async function sessions(key: string | undefined, { agent, cwd }: { agent?: string; cwd?: string }, cli: Cli) {
  if (key !== undefined && agent === undefined && cwd === undefined) return sessionsOf(key, cli);
  if (key === undefined && agent !== undefined) return nativeSessions(agent, cwd ?? process.cwd(), cli);
  throw new ThroughlineError('invalid', 'Name either a conversation, or an agent with --agent.', {
    hint: 'Write "throughline sessions KEY", or "throughline sessions --agent NAME [--cwd DIR]".',
  });
}

async function sessionsOf(key: string, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const oldestFirst = (await engine.sessions(key)).toReversed();
    const show = (session: (typeof oldestFirst)[number]) =>
      output.line(styled('bold', oneLine(session.id)), `  ${sessionLine(session)}`);
    await output.each(oldestFirst, show, 'This conversation has no session yet.');
  });
}

function sessionLine({ agent, origin, parent, state, watermark, condensedTo, openedAt }: PublicSession): string {
  const from = parent === null ? '' : ` from ${oneLine(parent)}`;
  const summary = condensedTo === 0 ? '' : ` (up to turn ${condensedTo} condensed by the agent)`;
  return `${oneLine(agent)}, ${origin}${from}, ${state}, has the turns up to ${watermark}${summary}, opened ${time(openedAt)}`;
}

const TITLE_SHOWN = 80;

async function nativeSessions(agent: string, cwd: string, { parts, options, output }: Cli): Promise<void> {
  if (options.server !== undefined) throw notThroughServer('sessions --agent');
  output.waitFor(`asking ${oneLine(agent)} for its sessions …`);
  const found = await parts.nativeSessions(options, agent, cwd);
  const oldestFirst = found.toSorted((a, b) => (a.updatedAt ?? 0) - (b.updatedAt ?? 0));
  await output.each(
    oldestFirst.map((session) => ({ agent, cwd, ...session })),
    ({ id, title, updatedAt }) => {
      const when = updatedAt === null ? '' : `  ${time(updatedAt)}`;
      output.line(styled('bold', oneLine(id)), when, `  ${cutTo(oneLine(title ?? ''), TITLE_SHOWN)}`);
    },
    `${oneLine(agent)} has no session in ${oneLine(cwd)}.`,
  );
}
