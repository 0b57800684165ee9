import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { given } from '../../../../core/input/arguments.ts';
import type { PublicTurn } from '../../../../core/public/turn.ts';
import { titleOf } from '../../../../core/turn/content.ts';
import { gathered, inPages } from '../../../../flow/pages.ts';
import type { Engine, QueueTurn } from '../../../../ports/engine.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { readPrompt } from '../../input.ts';
import { strandedLine } from '../../lines.ts';
import { styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';

interface Flags {
  readonly edit?: string;
  readonly drop?: readonly string[];
  readonly order?: readonly string[];
  readonly requestId?: string;
}

export function define(command: Command, cli: Cli): void {
  const names = (value: string, before: readonly string[] = []) => [
    ...before,
    ...value.split(',').map((name) => name.trim()),
  ];
  command
    .argument('<conversation>', 'its key or id')
    .argument('[prompt]', 'with --edit: the new prompt; "-" reads it from stdin')
    .option('--edit <turn>', 'replace the prompt of this turn')
    .option('--drop <turns>', 'cancel these turns, separated by commas', names)
    .option('--order <turns>', 'run these turns first, in this order, separated by commas', names)
    .option('--request-id <id>', 'makes a repeated command safe: with the same id nothing is changed again')
    .action((conversation: string, prompt: string | undefined, flags: Flags) =>
      queue(conversation, prompt, flags, cli),
    );
  addHelp(command, {
    about:
      'Lists the prompts that were accepted and have not begun, in the order in which they will run, or changes them. A turn is named by its ' +
      'number or its id. Turns keep their numbers: one that is edited, or moved behind a later one, ends as cancelled, and a new turn ' +
      'takes its place. If one of them begins at the same moment, nothing is changed.',
    examples: [
      'throughline queue notes',
      'throughline queue notes --edit 7 "Write the tests first."',
      'throughline queue notes --drop 8,9',
      'throughline queue notes --order 9,7',
    ],
  });
}

async function queue(conversation: string, prompt: string | undefined, flags: Flags, cli: Cli): Promise<void> {
  const { edit, drop, order, requestId } = flags;
  if ((edit === undefined) !== (prompt === undefined)) {
    throw new ThroughlineError('invalid', '"--edit" and a new prompt can only be used together.', {
      hint: 'For example: throughline queue notes --edit 7 "Write the tests first."',
    });
  }
  const { output, lookAt, withEngine } = cli;
  if (edit === undefined && drop === undefined && order === undefined) {
    return lookAt(async (engine) => list(await queued(engine, conversation), cli));
  }
  const text = prompt === undefined ? undefined : await readPrompt(prompt, output);
  await withEngine(async (engine) => {
    const wanted = wantedQueue(await queued(engine, conversation), given({ edit, drop, order, text }));
    const requeued = await engine.requeue(conversation, wanted, given({ requestId }));
    if (output.json) {
      output.value(requeued);
      return undefined;
    }
    for (const { n, replacedBy } of requeued.cancelled) {
      const by = requeued.queue.find(({ turnId }) => turnId === replacedBy);
      output.note(by === undefined ? `turn ${n} was dropped` : `turn ${n} is now turn ${by.n}`);
    }
    return list(await queued(engine, conversation), cli);
  });
}

function queued(engine: Engine, conversation: string): Promise<PublicTurn[]> {
  return gathered(inPages<PublicTurn>((last) => engine.queue(conversation, { after: last?.n ?? 0 })));
}

async function list(turns: readonly PublicTurn[], { output }: Cli): Promise<undefined> {
  const show = ({ n, id, agent, prompt }: PublicTurn) =>
    output.line(styled('bold', `turn ${n}`), `  ${id}  ${agent}  ${oneLine(titleOf(prompt))}`);
  await output.each(turns, show, 'No prompt is queued.');
  const [first] = turns;
  if (first?.stranded) output.note(oneLine(strandedLine(first.stranded)));
}

/** The whole queue as the flags describe it: turns of --order first, all others after them. */
function wantedQueue(
  turns: readonly PublicTurn[],
  { edit, drop = [], order = [], text }: Flags & { readonly text?: string },
): QueueTurn[] {
  const named = (name: string) => {
    const found = turns.find(({ n, id }) => String(n) === name || id === name);
    if (found !== undefined) return found;
    throw new ThroughlineError('not_found', `There is no queued turn "${name}".`, {
      hint: turns.length === 0 ? 'No prompt is queued.' : `Queued: ${turns.map(({ n }) => n).join(', ')}.`,
    });
  };
  const edited = edit === undefined ? undefined : named(edit);
  const dropped = new Set(drop.map(named));
  return [...new Set([...order.map(named), ...turns])].map((turn) => ({
    turn: turn.id,
    ...(turn === edited && text !== undefined && { prompt: text }),
    ...(dropped.has(turn) && { drop: true }),
  }));
}
