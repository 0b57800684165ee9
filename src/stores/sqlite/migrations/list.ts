import { sql as conversations } from './0001-conversations.ts';
import { sql as mirrors } from './0002-mirrors.ts';
import { sql as keys } from './0003-keys.ts';
import { sql as sessionStorage } from './0004-session-storage.ts';
import { sql as tasks } from './0005-tasks.ts';
import { sql as erasures } from './0006-erasures.ts';
import { sql as taskLimits } from './0007-task-limits.ts';
import { sql as omitted } from './0008-omitted.ts';
import { sql as trackedPrompts } from './0009-tracked-prompts.ts';
import { sql as limits } from './0010-limits.ts';
import { sql as condensed } from './0011-condensed.ts';
import { sql as adoptedHistory } from './0012-adopted-history.ts';
import { sql as recovered } from './0013-recovered.ts';
import { sql as takers } from './0014-takers.ts';
import { sql as erasedSandboxes } from './0015-erased-sandboxes.ts';
import { sql as fairClaims } from './0016-fair-claims.ts';
import { sql as sessionParents } from './0017-session-parents.ts';
import { sql as log } from './0018-log.ts';
import { sql as leftLiving } from './0019-left-living.ts';
import { sql as told } from './0020-told.ts';
import { sql as deliveries } from './0021-deliveries.ts';
import { sql as choices } from './0022-choices.ts';
import { sql as queue } from './0023-queue.ts';
import { sql as listed } from './0024-listed.ts';
import { sql as storeClock } from './0025-store-clock.ts';
import { sql as ownersOfKeys } from './0026-owners-of-keys.ts';
import { sql as titles } from './0027-titles.ts';
import { sql as sandboxes } from './0028-sandboxes.ts';
import { sql as signInLinks } from './0029-sign-in-links.ts';
import { sql as arranged } from './0030-arranged.ts';

/** Every schema there has been, in order; the number of a migration is its place here, from 1. None is ever changed. */
export const MIGRATIONS: readonly string[] = [
  conversations,
  mirrors,
  keys,
  sessionStorage,
  tasks,
  erasures,
  taskLimits,
  omitted,
  trackedPrompts,
  limits,
  condensed,
  adoptedHistory,
  recovered,
  takers,
  erasedSandboxes,
  fairClaims,
  sessionParents,
  log,
  leftLiving,
  told,
  deliveries,
  choices,
  queue,
  listed,
  storeClock,
  ownersOfKeys,
  titles,
  sandboxes,
  signInLinks,
  arranged,
];
