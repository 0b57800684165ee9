import type { AgentTraits } from '../../../src/core/restore/traits.ts';
import { TRAITS } from '../../values/plain.ts';

/** A kind of agent: its traits, and how it treats its sessions. */
export interface Profile {
  readonly traits: AgentTraits;
  /** When it gives a session another id: never, when it is resumed, or with each prompt. */
  readonly rotates: 'never' | 'open' | 'prompt';
  /** Reports the id of a session only with its first answer. */
  readonly namesLate: boolean;
}

function profile(traits: Partial<AgentTraits>, ways: Partial<Profile> = {}): Profile {
  return { rotates: 'never', namesLate: false, ...ways, traits: { ...TRAITS, ...traits } };
}

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
  replaying: profile({ noTools: true, resume: false, position: false }),
} as const;

export type ProfileName = keyof typeof PROFILES;
