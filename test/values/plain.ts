import type { AgentTraits } from '../../src/core/restore/traits.ts';
import type { TurnRecord } from '../../src/core/turn/record.ts';
import { NO_USAGE } from '../../src/core/turn/usage.ts';

/** Ordinary values, so that a test states only the fields that matter to it. */

const FIRST_AT = 1_700_000_000_000;
const MINUTE = 60_000;

export function record(n: number, more: Partial<TurnRecord> = {}): TurnRecord {
  return {
    version: 1,
    n,
    agent: 'agent',
    sessionId: null,
    outcome: 'completed',
    prompt: [{ type: 'text', text: `prompt ${n}` }],
    parts: [{ type: 'text', text: `answer ${n}` }],
    failure: null,
    usage: NO_USAGE,
    startedAt: FIRST_AT + n * MINUTE,
    endedAt: FIRST_AT + n * MINUTE + 5_000,
    ...more,
  };
}

/** An agent whose storage can be read, and that reopens its sessions. */
export const TRAITS: AgentTraits = {
  version: '1',
  id: 'issued',
  resume: true,
  load: false,
  list: false,
  rehydrate: false,
  noTools: false,
  position: true,
  rewind: false,
  images: true,
  window: 100_000,
  windowFrom: 'setting',
};
