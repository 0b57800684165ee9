import { type Command, Option } from 'commander';
import { checkEventNumber } from '../../../../core/event.ts';
import { type Delayed, isDelayed } from '../../../../core/limits/slots.ts';
import type { PublicEvent, PublicEventKind, PublicEventPayloads } from '../../../../core/public/event.ts';
import type { Stranded } from '../../../../core/turn/standing.ts';
import {
  chunkText,
  modelRetryIn,
  printedText,
  retryText,
  tokensSpent,
  type Update,
} from '../../../../core/turn/update.ts';
import type { Engine } from '../../../../ports/engine.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { DONE, EXIT } from '../../exit-codes.ts';
import { wholeNumber } from '../../input.ts';
import { RECOVERED, receiptLine, stalledLine, strandedLine, turns } from '../../lines.ts';
import { styled } from '../../output.ts';
import { onStopSignals } from '../../stop-signals.ts';
import { oneLine } from '../../terminal-text.ts';
import { watchStranded } from './watch-turn.ts';

interface FollowFlags {
  readonly after?: number;
  readonly last?: number;
  readonly log?: string;
  readonly untilIdle?: boolean;
}

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .option('--after <n>', 'start after the event of this number (default: 0, all events)', wholeNumber)
    .addOption(
      new Option('--last <n>', 'start with the last n events').argParser(wholeNumber).conflicts(['after', 'log']),
    )
    .option('--log <id>', 'the log that the number is from ("logId" of "show --json"); fail if the log has changed')
    .option('--until-idle', 'end when the conversation has no open turn')
    .action((key: string, flags: FollowFlags) => follow(key, flags, cli));
  addHelp(command, {
    about:
      'Events are numbered without gaps. To continue later, give the last number that you saw to --after. With --until-idle, the ' +
      'exit code is 7 when turns are open and no process runs them.',
    examples: [
      'throughline follow notes',
      'throughline follow notes --last 20',
      'throughline follow notes --after 42 --until-idle --json',
    ],
  });
}

/** How often we check whether a process runs the open turns. */
const LOOK_MS = 1_000;

async function follow(key: string, { log, untilIdle, ...from }: FollowFlags, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const found = await engine.conversation(key);
    const after = from.last === undefined ? (from.after ?? 0) : Math.max(0, found.lastSeq - from.last);
    checkEventNumber({ after, log }, found);
    const { id, logId } = found;
    const stop = new AbortController();
    let exitCode = DONE;
    const leave = (code: number) => {
      exitCode = code;
      stop.abort();
    };
    const stopListening = onStopSignals({
      cancel: () => leave(EXIT.cancelled),
      kill: () => process.exit(EXIT.cancelled),
      terminate: () => leave(EXIT.interrupted),
    });
    output.gone.addEventListener('abort', () => stop.abort());
    const over = new AbortController();
    const onHindrance = (why: Stranded | Delayed) => {
      // A delayed turn begins by itself.
      if (!untilIdle || isDelayed(why)) return output.note(oneLine(strandedLine(why)));
      const { message, hint } = why;
      output.failure({ code: 'interrupted', message: `Stopped before the conversation was idle. ${message}`, hint });
      leave(EXIT.interrupted);
    };
    const look = async () => {
      const { stranded, delayed } = await engine.summary(id);
      return stranded ?? delayed;
    };
    void watchStranded(look, { everyMs: LOOK_MS, signal: over.signal }, onHindrance);
    try {
      let last = untilIdle ? await lastWhenIdle(engine, id) : null;
      if (last !== null && after >= last) return DONE;
      for await (const event of engine.follow(id, { after, log: logId, signal: stop.signal })) {
        if (output.json) output.value(event);
        else output.line(styled('dim', `${String(event.seq).padStart(5)}  `), eventLine(event));
        // Look again at the last event: a turn may have been queued meanwhile.
        const mayBeLast = event.kind === 'turn.ended' || (last !== null && event.seq >= last);
        if (untilIdle && mayBeLast) last = await lastWhenIdle(engine, id);
        if (last !== null && event.seq >= last) break;
      }
      return exitCode;
    } finally {
      over.abort();
      stopListening();
    }
  });
}

/** The number of the last event; null: a turn is open, so more will come. */
async function lastWhenIdle(engine: Engine, id: string): Promise<number | null> {
  const { open } = await engine.summary(id);
  return open > 0 ? null : (await engine.conversation(id)).lastSeq;
}

/** Each kind of event in words. A new kind does not compile until it is here. */
const WORDS: { readonly [K in PublicEventKind]: (payload: PublicEventPayloads[K]) => string } = {
  'conversation.created': ({ agent }) => `conversation created${agent ? ` for ${agent}` : ''}`,
  'conversation.forked': ({ conversationId, n }) => `forked from ${conversationId} after turn ${n}`,
  'conversation.imported': ({ turns: count }) => `imported with ${turns(count)}`,
  'conversation.titled': ({ title }) => `titled "${title}"`,
  'conversation.arranged': ({ pinned, putAway }) =>
    putAway ? 'put away' : pinned ? 'pinned' : 'neither pinned nor put away',
  'conversation.moved': ({ from, to, by }) => `moved by ${by} from ${from} to ${to}, without the files of its work`,
  'turn.queued': ({ n, agent, preview }) => `turn ${n} for ${agent}: ${preview}`,
  'turn.started': ({ n, attempt }) => `turn ${n} started${attempt > 1 ? `, attempt ${attempt}` : ''}`,
  'turn.requeued': ({ n }) => `turn ${n} is queued again: its worker ended before anything was sent`,
  'turn.sent': ({ n }) => `turn ${n} sent`,
  'turn.update': ({ update }) => updateWords(update),
  'turn.retrying': ({ n, failure }) => `turn ${n} is tried again: ${failure.message}`,
  'turn.stalled': (payload) => stalledLine(payload),
  'turn.cancel_requested': ({ n, by }) => `${by} asked turn ${n} to stop`,
  'turn.ended': ({ n, outcome, failure, recovered }) =>
    `turn ${n} ${outcome}${failure ? `: ${failure.message}` : recovered ? `. ${RECOVERED}` : ''}`,
  'session.opened': ({ sessionId, agent, origin }) => `session ${sessionId} of ${agent} (${origin})`,
  'session.changed': ({ sessionId, state, reason }) => `session ${sessionId} is ${state}${reason ? `: ${reason}` : ''}`,
  'session.locked': ({ waits, ms }) => `another program is using the session; wait ${waits}, ${ms} ms`,
  'restore.started': ({ rung, total }) => `restoring the context by ${rung}: ${turns(total)}`,
  'restore.progress': ({ rung, done, total }) => `restoring by ${rung}: ${done} of ${total}`,
  'restore.tried': ({ rung, failure }) => `${rung} failed: ${failure}`,
  'restore.receipt': (receipt) => receiptLine(receipt),
  'sandbox.created': (sandbox) => `${sandboxName(sandbox)} created`,
  'sandbox.reopened': (sandbox) => `${sandboxName(sandbox)} reopened by another process`,
  'sandbox.set-up': ({ steps, ...sandbox }) =>
    `${sandboxName(sandbox)} set up: ${steps.map(({ name, code }) => (code === 0 ? name : `${name} failed`)).join(', ')}`,
  'sandbox.rested': ({ reason, ...sandbox }) => `${sandboxName(sandbox)} put to rest: ${reason}`,
  'sandbox.destroyed': ({ reason, ...sandbox }) => `${sandboxName(sandbox)} removed: ${reason}`,
  'permission.asked': ({ permissionId, title }) => `asks for permission: ${oneLine(title, 'code')} (${permissionId})`,
  'permission.answered': ({ optionId, by }) => `answered ${optionId}, by ${by}`,
  'permission.denied': ({ reason }) => `denied: ${reason}`,
  'permission.withdrawn': ({ reason }) => `question withdrawn: ${reason}`,
  'event.unknown': ({ kind }) => `${kind}: an event of a newer version; update Throughline to see it`,
};

function sandboxName({ name, sandboxId }: PublicEventPayloads['sandbox.created']): string {
  return `sandbox ${name ?? sandboxId}`;
}

/** One event in one line. A server of a newer version may send other kinds. */
function eventLine({ kind, payload }: PublicEvent): string {
  if (!Object.hasOwn(WORDS, kind)) return oneLine(WORDS['event.unknown']({ kind }));
  return oneLine((WORDS[kind] as (payload: unknown) => string)(payload));
}

function updateWords(update: Update): string {
  const text = chunkText(update);
  if (update.sessionUpdate === 'agent_message_chunk') return `says: ${text ?? '[no text]'}`;
  if (update.sessionUpdate === 'agent_thought_chunk') return `thinks: ${text ?? '[no text]'}`;
  const retry = modelRetryIn(update);
  if (retry !== null) return retryText(retry);
  const spent = tokensSpent(update);
  if (spent !== null) return `has used ${spent} tokens so far`;
  const printed = printedText(update) ?? '';
  if (printed !== '') return `prints: ${printed}`;
  const { title, status } = update as { title?: unknown; status?: unknown };
  const tool = typeof title === 'string' ? oneLine(title, 'code') : null;
  return [update.sessionUpdate, tool, status].filter((word) => typeof word === 'string').join(' ');
}
