import { afterAll, test } from 'vitest';
import { whyNoDoubles } from '../../vendors/double/service.ts';
import { sandboxContract } from './sandbox.contract.ts';
import { VENDORS, VendorGiven } from './vendor-given.ts';

const why = whyNoDoubles();
for (const kind of VENDORS) {
  if (why !== null) {
    test(`the contract of sandboxes in machines of ${kind}`, (context) => context.skip(why));
    continue;
  }
  const given = new VendorGiven(kind);
  afterAll(() => given.service.dispose());
  sandboxContract(`${kind}, with a double of its package`, async () => given);
}
