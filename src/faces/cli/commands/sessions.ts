import type { Command } from 'commander';
import { ThroughlineError } from '../../../core/errors.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { nativeSessions } from '../native-sessions.ts';
import { directory } from '../option-values.ts';
import { styled } from '../output.ts';
import { oneLine } from '../terminal-text.ts';
import { time } from '../time.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('[key]', 'the conversation: its key or id')
    .option('--agent <name>', "the agent's own sessions instead, which a conversation could go on with")
    .option('--cwd <dir>', 'of this directory; left out: the current one', directory)
    .action((key: string | undefined, flags: { agent?: string; cwd?: string }) => either(key, flags, cli));
  command.addHelpText(
    'after',
    "\nThe ids are the agents' own. A session is a cache of the conversation, told up to its watermark (a turn's number).\n" +
      'With --agent, those that the agent itself has, whoever made them: "send KEY PROMPT --session ID --cwd DIR" goes on with one.',
  );
  addExamples(
    command,
    'throughline sessions notes',
    'throughline sessions --agent claude --cwd .',
    'throughline sessions notes --json | jq -r \'select(.state == "live").id\'',
  );
}

async function either(key: string | undefined, { agent, cwd }: { agent?: string; cwd?: string }, cli: Cli) {
  if (key !== undefined && agent === undefined && cwd === undefined) return sessions(key, cli);
  if (key === undefined && agent !== undefined) return nativeSessions(agent, cwd ?? process.cwd(), cli);
  throw new ThroughlineError('invalid', 'Name a conversation, or an agent with --agent.', {
    hint: 'Say "throughline sessions KEY", or "throughline sessions --agent NAME [--cwd DIR]".',
  });
}

async function sessions(key: string, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const lineage = await engine.sessions(key);
    // Oldest first, as they were lived in.
    for (const session of lineage.toReversed()) {
      if (output.json) output.value(session);
      else {
        const { id, agent, origin, parent, watermark, state, openedAt } = session;
        const from = parent === null ? '' : ` from ${oneLine(parent)}`;
        output.line(
          styled('bold', oneLine(id)),
          `  ${oneLine(agent)}, ${origin}${from}, ${state}, told up to turn ${watermark}, opened ${time(openedAt)}`,
        );
      }
    }
    if (lineage.length === 0) output.note('It has not lived in any session yet.');
    return DONE;
  });
}
