import type { AgentTraits } from '../../../src/core/traits.ts';

/** A kind of agent: what it declares, and how it treats its sessions. */
export interface Profile {
  readonly traits: AgentTraits;
  /** Gives a session another id: when it is opened again, or when it is prompted. */
  readonly rotates: 'never' | 'open' | 'prompt';
  /** Says its id only with its first answer. */
  readonly namesLate: boolean;
}

const PLAIN: AgentTraits = {
  version: '1',
  id: 'issued',
  resume: true,
  load: false,
  list: false,
  rehydrate: false,
  embeddedContext: false,
  noTools: false,
  position: true,
  rewind: false,
  window: 100_000,
};

function profile(traits: Partial<AgentTraits>, ways: Partial<Profile> = {}): Profile {
  return { rotates: 'never', namesLate: false, ...ways, traits: { ...PLAIN, ...traits } };
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
  rehydrating: profile({ rehydrate: true, embeddedContext: true }),
  replaying: profile({ noTools: true, resume: false, position: false }),
} as const;

export type ProfileName = keyof typeof PROFILES;
