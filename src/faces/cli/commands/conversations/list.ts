import type { Command } from 'commander';
import { CONVERSATION_STATES, type ConversationFilter, type ConversationState } from '../../../../core/conversation.ts';
import { tokensOf } from '../../../../core/limits/budget.ts';
import type { PublicConversation } from '../../../../core/public/conversation.ts';
import { inPages } from '../../../../flow/pages.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { positiveNumber } from '../../input.ts';
import { costLine, counted, strandedLine, time, turns } from '../../lines.ts';
import { styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command
    .option('--limit <n>', 'at most this many', positiveNumber, 50)
    .option('--agent <agent>', 'only those whose last turn was for this agent')
    .option(
      '--state <states>',
      `only those in one of these states, separated by commas: ${CONVERSATION_STATES.join(', ')}`,
      states,
    )
    .option('--since <time>', 'only those that changed then or later: 2026-01-31 (UTC), or 2026-01-31T12:00:00Z')
    .option('--until <time>', 'only those that changed before then')
    .option('--put-away', 'only those that were put away; otherwise they are left out')
    .option('--session <id>', 'only those that have used this session of an agent')
    .action((flags: ListFlags) => list(flags, cli));
  addHelp(command, {
    about:
      'Most recently changed first. The state is what a conversation is doing (asks: an agent waits for an answer; running; queued), ' +
      'or how its last turn ended (unrestored: the context could not be restored; failed; interrupted). All others are idle. ' +
      'Conversations that were put away are left out, also with --json.',
    examples: [
      'throughline list',
      'throughline list --state asks,unrestored,failed',
      'throughline list --agent claude --since 2026-01-31',
      "throughline list --limit 500 --json | jq -r '.key'",
      'throughline list --session ID',
      'throughline list --put-away',
    ],
  });
}

interface ListFlags extends ConversationFilter {
  readonly limit: number;
  readonly session?: string;
}

function states(value: string): ConversationState[] {
  return value.split(',').map((state) => state.trim() as ConversationState);
}

/** Conversations that need a person stand out. */
const STATE_STYLES: Partial<Record<ConversationState, 'yellow' | 'red' | 'cyan'>> = {
  asks: 'yellow',
  running: 'cyan',
  queued: 'cyan',
  unrestored: 'red',
  failed: 'red',
  interrupted: 'red',
};

async function list(flags: ListFlags, { output, lookAt }: Cli): Promise<void> {
  const { limit, session, putAway = false, ...filter } = flags;
  await lookAt(async (engine) => {
    const read = (last: PublicConversation | undefined, wanted: number) =>
      engine.list({ ...filter, putAway, limit: wanted, ...(last && { before: last }) });
    const show = (one: PublicConversation) => {
      const { key, id, title, state, lastAgent, historyCount, open, usage, stranded, delayed, updatedAt } = one;
      const name = styled('bold', oneLine(key ?? id));
      const count = open === 0 ? turns(historyCount) : `${turns(historyCount)} and ${open} open`;
      const style = STATE_STYLES[state];
      const now = style === undefined ? '' : styled(style, `  ${state}`);
      const tokens = tokensOf(usage) === 0 ? '' : `, ${counted(tokensOf(usage), 'token')}`;
      const known = costLine(usage);
      const cost = known === null ? '' : `, ${known}`;
      const agent = lastAgent === null ? '' : `, ${oneLine(lastAgent)}`;
      output.line(name, now, `  ${count}${agent}${tokens}${cost}, ${time(updatedAt)}  `, styled('dim', oneLine(title)));
      const why = stranded ?? delayed;
      if (why !== null) output.line(styled('yellow', `  ${output.runnable(oneLine(strandedLine(why)))}`));
    };
    if (session !== undefined) {
      await output.each(
        await engine.list({ ...filter, ...(putAway && { putAway }), limit, session }),
        show,
        'No conversation has used this session.',
      );
      return;
    }
    const away = putAway || output.json ? 0 : await engine.countPutAway();
    const isFiltered = putAway || away > 0 || Object.keys(filter).length > 0;
    const none = isFiltered
      ? 'No conversation matches.'
      : 'There are no conversations yet. Start one with "throughline send KEY PROMPT".';
    await output.each(inPages(read, limit), show, none);
    const [is, them] = away === 1 ? ['is', 'it'] : ['are', 'them'];
    if (away > 0)
      output.note(`${counted(away, 'conversation')} ${is} put away: "throughline list --put-away" shows ${them}.`);
  });
}
