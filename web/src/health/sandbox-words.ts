import type { Sandbox } from 'throughline/client';
import { bytes } from '../ui/time.tsx';

/** What the state of a sandbox is called. */
export const SANDBOX_STATES: Readonly<Record<Sandbox['state'], string>> = {
  new: 'not opened yet',
  ready: 'ready',
  resting: 'at rest',
};

/** Everything that it takes on the disk; null: not measured yet. */
export function sizeOf({ disk }: Pick<Sandbox, 'disk'>): string | null {
  return disk === null ? null : bytes(disk.work + disk.state + disk.copies);
}
