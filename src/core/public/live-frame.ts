import { type Failure, ThroughlineError } from '../errors.ts';
import { checkAfter, checkOptions, checkText, shown } from '../input/arguments.ts';
import type { PublicEvent } from './event.ts';
import type { PublicTaskEvent } from './task.ts';

/** What one feed follows. A numbered feed continues after an event, in the log to which the number belongs. */
type Followed =
  /** Which conversations have changed. */
  | { readonly of: 'hints' }
  /** The events of all tasks. */
  | { readonly of: 'board'; readonly after?: number; readonly log?: string }
  /** The events of one conversation, by its id or key. */
  | { readonly of: 'conversation'; readonly conversation: string; readonly after?: number; readonly log?: string };

/**
 * One of the things that a live stream follows, under a name that the caller chooses.
 *
 * @example
 * import type { Feed } from 'throughline';
 *
 * const feeds: Feed[] = [{ feed: 'changes', of: 'hints' }, { feed: 'chat', of: 'conversation', conversation: 'ticket-4711', after: 12 }];
 */
export type Feed = { readonly feed: string } & Followed;

/**
 * What a live stream yields; `feed` names the feed that it belongs to.
 *
 * @example
 * for await (const frame of tl.live([{ feed: 'changes', of: 'hints' }])) {
 *   if (frame.kind === 'hint') console.log('look again at', frame.hint.conversationId ?? 'all');
 * }
 */
export type LiveFrame = { readonly feed: string } & (
  | {
      /** A numbered feed begins, again after every reconnect. Its events up to `seq` are those that were missed. */
      readonly kind: 'began';
      readonly seq: number;
      readonly logId: string;
    }
  | { readonly kind: 'event'; readonly event: PublicEvent }
  | { readonly kind: 'task'; readonly event: PublicTaskEvent }
  /** Which conversation may have changed; null: any. The first hint of a connection says `null`. */
  | { readonly kind: 'hint'; readonly hint: { readonly conversationId: string | null; readonly seq: number | null } }
  /** The feed has ended, and the others continue: no such conversation, `log_changed`, damaged data. */
  | { readonly kind: 'ended'; readonly failure: Failure }
);

/** The first frame of a stream over HTTP: which stream it is, and how often its server sends a heartbeat. */
export interface StreamOpened {
  readonly kind: 'opened';
  readonly streamId: string;
  readonly heartbeatMs: number;
}

/** The most feeds of one stream. */
export const MOST_FEEDS = 100;

const OPTIONS = { feed: true, of: true, conversation: true, after: true, log: true };

function checkFeed(given: { readonly [Name in keyof typeof OPTIONS]?: unknown }): void {
  const { feed, of, conversation, after, log } = given;
  const what = `The feed "${checkText(feed, 'feed name')}"`;
  checkOptions(given, OPTIONS, what);
  if (of !== 'hints' && of !== 'board' && of !== 'conversation') {
    throw new ThroughlineError('invalid', `${what} must be of "hints", "board" or "conversation", not ${shown(of)}.`);
  }
  if (of === 'conversation') checkText(conversation, 'conversation');
  checkAfter(after);
  if (log !== undefined) checkText(log, 'log');
}

/** Throws `invalid`. */
export function checkFeeds(feeds: readonly Feed[]): readonly Feed[] {
  if (feeds.length > MOST_FEEDS) {
    throw new ThroughlineError('invalid', `A live stream has at most ${MOST_FEEDS} feeds, not ${feeds.length}.`, {
      hint: 'End feeds that are not needed. One feed of hints covers every conversation.',
    });
  }
  const names = new Set<string>();
  for (const feed of feeds) {
    checkFeed(feed);
    if (names.has(feed.feed)) throw new ThroughlineError('invalid', `Two feeds have the name "${feed.feed}".`);
    names.add(feed.feed);
  }
  return feeds;
}
