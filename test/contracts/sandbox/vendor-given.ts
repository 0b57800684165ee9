// Sandboxes in machines of a vendor, for tests. As a program: starts another program in one, and does not end it.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Sandboxes } from '../../../src/ports/sandbox.ts';
import { e2bVendor } from '../../../src/sandboxes/vendors/e2b.ts';
import { programFiles } from '../../../src/sandboxes/vendors/program-files.ts';
import type { Vendor } from '../../../src/sandboxes/vendors/vendor.ts';
import { vendorSandboxes } from '../../../src/sandboxes/vendors/vendor-sandboxes.ts';
import { vercelVendor } from '../../../src/sandboxes/vendors/vercel.ts';
import * as e2b from '../../vendors/double/e2b.ts';
import { Service } from '../../vendors/double/service.ts';
import * as vercel from '../../vendors/double/vercel.ts';
import type { GivenSandboxes } from './around.ts';

const SOURCES = new URL('../../../src/', import.meta.url);
export const VENDORS = ['vercel', 'e2b'] as const;
type Kind = (typeof VENDORS)[number];

/** `root`: the folder of the machines. `around`: wraps the vendor. */
export function sandboxesOf(
  kind: Kind,
  root: string,
  { awakeMs = 600_000, around = (vendor) => vendor }: { awakeMs?: number; around?: (vendor: Vendor) => Vendor } = {},
): Sandboxes {
  const settings = { image: null, port: 43_117, awakeMs };
  return vendorSandboxes({
    ...{ kind, place: 'test0000', home: root, ...settings, image: '' },
    program: () => programFiles(SOURCES, 'bridge.ts'),
    vendor: async (prefix) =>
      around(
        kind === 'vercel'
          ? vercelVendor(vercel, { ...settings, prefix }, { token: root, teamId: 'team', projectId: 'project' })
          : e2bVendor(e2b, { ...settings, prefix }, root),
      ),
  });
}

/** Tests use the same machines, one after the other, because to start one takes longer than a test. */
export class VendorGiven implements GivenSandboxes {
  readonly kind: Kind;
  readonly service: Service;

  constructor(kind: Kind) {
    this.kind = kind;
    this.service = new Service(realpathSync(mkdtempSync(join(tmpdir(), 'throughline-machines-'))));
  }

  sandboxes(): Sandboxes {
    return sandboxesOf(this.kind, this.service.root);
  }

  starter(words: readonly string[]): readonly [string, ...string[]] {
    return [process.execPath, import.meta.filename, this.kind, this.service.root, ...words];
  }

  /** Removes what a test left in the sandboxes. */
  async dispose(): Promise<void> {
    for (const { id } of this.service.all()) {
      const sandboxes = join(this.service.root, id, 'files/.throughline/sandboxes');
      rmSync(sandboxes, { recursive: true, force: true, maxRetries: 5 });
    }
  }
}

if (process.argv[1] === import.meta.filename) {
  const [kind, root = '', ...words] = process.argv.slice(2);
  const sandbox = await sandboxesOf(kind as Kind, root).open('one', { cwd: null });
  const child = await sandbox.spawn(words, { env: {} });
  console.log(JSON.stringify(child.identity));
  await child.exited;
}
