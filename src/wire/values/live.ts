import * as z from 'zod';
import {
  type Feed as FeedValue,
  type LiveFrame as LiveFrameValue,
  MOST_FEEDS,
  type StreamOpened,
} from '../../core/public/live-frame.ts';
import { named, namedObject } from '../registry.ts';
import { Count, Failure, Id } from './common.ts';
import { ConversationEvent } from './event.ts';
import { Hint } from './rest.ts';
import { TaskEvent } from './task.ts';

const optional = z.exactOptional;
const numbered = { after: optional(Count), log: optional(Id) };

/** What a live stream follows, under a name that the caller chooses. */
const Feed = named(
  'Feed',
  z.discriminatedUnion('of', [
    z.strictObject({ feed: Id, of: z.literal('hints') }),
    z.strictObject({ feed: Id, of: z.literal('board'), ...numbered }),
    z.strictObject({ feed: Id, of: z.literal('conversation'), conversation: Id, ...numbered }),
  ]),
) satisfies z.ZodType<FeedValue>;

export const Feeds = namedObject('Feeds', { feeds: z.array(Feed).max(MOST_FEEDS) });

/** The first frame names the stream. Every other one names its feed. */
export const LiveFrame = named(
  'LiveFrame',
  z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('opened'), streamId: z.string(), heartbeatMs: Count }),
    z.strictObject({ feed: z.string(), kind: z.literal('began'), seq: Count, logId: z.string() }),
    z.strictObject({ feed: z.string(), kind: z.literal('event'), event: ConversationEvent }),
    z.strictObject({ feed: z.string(), kind: z.literal('task'), event: TaskEvent }),
    z.strictObject({ feed: z.string(), kind: z.literal('hint'), hint: Hint }),
    z.strictObject({ feed: z.string(), kind: z.literal('ended'), failure: Failure }),
  ]),
) satisfies z.ZodType<LiveFrameValue | StreamOpened>;
