import type { Sandbox } from 'throughline/client';
import { bytes } from '../ui/time.tsx';

export const SANDBOX_STATES: Readonly<Record<Sandbox['state'], string>> = {
  new: 'not opened yet',
  ready: 'ready',
  resting: 'at rest',
};

/** Its disk space; null: not measured yet. */
export function sizeOf({ disk }: Pick<Sandbox, 'disk'>): string | null {
  return disk === null ? null : bytes(disk.work + disk.state + disk.copies);
}
