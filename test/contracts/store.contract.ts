import { afterEach, beforeEach, describe } from 'vitest';
import type { Store } from '../../src/ports/store.ts';
import { adopting } from './store/adopting.ts';
import { bell } from './store/bell.ts';
import { commits } from './store/commits.ts';
import { conversations } from './store/conversations.ts';
import { copies } from './store/copies.ts';
import { erasing } from './store/erasing.ts';
import { finding } from './store/finding.ts';
import { keys } from './store/keys.ts';
import { leases } from './store/leases.ts';
import { owners } from './store/owners.ts';
import { pages } from './store/pages.ts';
import { permissions } from './store/permissions.ts';
import { queue } from './store/queue.ts';
import { records } from './store/records.ts';
import { sandboxes } from './store/sandboxes.ts';
import { sessions } from './store/sessions.ts';
import { tasks } from './store/tasks.ts';
import { totals } from './store/totals.ts';
import { turns } from './store/turns.ts';
import type { StoreHarness, StoreSite, World } from './store/world.ts';

/** What every store must do. Uses only the port: a new store calls it with its own harness. */
export function storeContract(harness: StoreHarness): void {
  describe(`a ${harness.name} store`, () => {
    let site: StoreSite;
    let store: Store;
    beforeEach(async () => {
      site = await harness.site();
      store = await site.open();
    });
    afterEach(() => site.destroy());
    const world: World = {
      get store() {
        return store;
      },
      get site() {
        return site;
      },
    };
    const parts = {
      conversations,
      turns,
      queue,
      adopting,
      leases,
      commits,
      sessions,
      permissions,
      records,
      totals,
      copies,
      finding,
    };
    for (const [name, part] of Object.entries({ ...parts, pages, owners, keys, erasing, bell, tasks, sandboxes }))
      describe(name, () => part(world));
  });
}

export type { Damage, StoreHarness, StoreSite } from './store/world.ts';
