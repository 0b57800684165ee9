import type { Finding } from '../ports/doctor.ts';
import { checkLeases } from './leases.ts';
import type { Check, DoctorParts } from './parts.ts';
import { checkProcesses } from './processes.ts';
import { checkSandboxes } from './sandboxes.ts';
import { checkSessions } from './sessions.ts';
import { checkTasks } from './tasks.ts';

/** In the order in which things are best repaired: who is dead holds nothing, and what nobody holds is not running. */
const CHECKS: readonly Check[] = [checkLeases, checkTasks, checkProcesses, checkSessions, checkSandboxes];

/** Looks for what crashes have left over. */
export async function examine(parts: DoctorParts): Promise<Finding[]> {
  const findings: Finding[] = [];
  const census = await parts.store.census();
  for (const check of CHECKS) findings.push(...(await check(parts, census)));
  return findings;
}
