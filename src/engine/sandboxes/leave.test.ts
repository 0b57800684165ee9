import { expect, test } from 'vitest';
import { type LeaveRequest, restSandbox } from './leave.ts';

test.each([
  { usedAt: 1_000, left: ['rested'] },
  { usedAt: 1_001, left: [] },
])(
  'a policy suspends a sandbox only if it was not used since it was listed: used at $usedAt',
  async ({ usedAt, left }) => {
    const done: string[] = [];
    const store = {
      sandboxUses: async () => [],
      holdSandbox: async () => null,
      findSandbox: async () => ({ usedAt }),
      leaveSandbox: async (_: string, __: string, how: string) => void done.push(how),
      releaseSandbox: async () => {},
    };
    const request = {
      parts: { store, sandboxes: { place: 'here' }, settings: { leaseMs: 60_000 }, clock: { monotonic: () => 0 } },
      worker: { self: { id: 'we' }, shutdown: new AbortController().signal },
      sandbox: { id: 'one', owner: 'ann', place: 'here', usedAt: 500 },
      ...{ by: 'policy', reason: 'nobody uses it', unusedSince: 1_000 },
    } as unknown as LeaveRequest;
    await restSandbox(request).catch((error: unknown) => expect(error).toMatchObject({ code: 'conflict' }));
    expect(done).toEqual(left);
  },
);
