import type { AgentTraits } from '../../../src/core/restore/traits.ts';
import { TRAITS } from '../../values/plain.ts';

/** A kind of agent: its traits, and how it treats its sessions. */
export interface Profile {
  readonly traits: AgentTraits;
  /** When it gives a session another id: never, when it is resumed, or with each prompt. */
  readonly rotates: 'never' | 'open' | 'prompt';
  /** A session with another id has nothing of the one before. */
  readonly forgets: boolean;
  /** Reports the id of a session only with its first answer. */
  readonly namesLate: boolean;
  /** The profile without tools ends while the process runs. Otherwise the session has to be reopened. */
  readonly toolsInPlace: boolean;
}

function profile(traits: Partial<AgentTraits>, ways: Partial<Profile> = {}): Profile {
  return {
    rotates: 'never',
    forgets: false,
    namesLate: false,
    toolsInPlace: true,
    ...ways,
    traits: { ...TRAITS, ...traits },
  };
}

const REPLAYED = { noTools: true, resume: false, position: false };

export const PROFILES = {
  plain: profile({}),
  assigned: profile({ id: 'assigned' }),
  rotating: profile({}, { rotates: 'prompt' }),
  'rotating when opened': profile({}, { rotates: 'open' }),
  'late to name itself': profile({}, { namesLate: true }),
  forgetful: profile({ resume: false, position: false }),
  loading: profile({ resume: false, load: true, position: false }),
  unproved: profile({ position: false }),
  rehydrating: profile({ rehydrate: true }),
  rewinding: profile({ rewind: true }),
  'like Claude': profile({ id: 'assigned', rehydrate: true, noTools: true, rewind: true }),
  replaying: profile(REPLAYED),
  'replaying, and forgetful with each prompt': profile(REPLAYED, { rotates: 'prompt', forgets: true }),
  'forgetful with each prompt, and readable': profile({ noTools: true }, { rotates: 'prompt', forgets: true }),
  'assigned and rotating': profile({ id: 'assigned', noTools: true }, { rotates: 'prompt' }),
  'reopened after a replay': profile({ noTools: true }, { toolsInPlace: false }),
  'reopened after a replay, unproved': profile({ noTools: true, position: false }, { toolsInPlace: false }),
} as const;

export type ProfileName = keyof typeof PROFILES;
