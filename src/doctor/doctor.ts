import { isDamage } from '../core/errors.ts';
import type { Finding } from '../ports/doctor.ts';
import type { Check, DoctorParts } from './parts.ts';
import { checkElsewhere, checkErased, checkProbes, checkSandboxes } from './sandbox-checks.ts';
import { checkSessions } from './session-checks.ts';
import { checkFile, checkLosses, checkRestores, checkServer, checkWritable } from './storage-checks.ts';
import { checkLeases, checkPlaces, checkProcesses, checkTasks, checkTurns } from './work-checks.ts';

/**
 * A new check is one function in the file of its subject, and one entry here. The order is the one to repair in: a dead holder is cleared first,
 * and then what it held is found to be free.
 */
const CHECKS: readonly Check[] = [
  checkWritable,
  checkServer,
  checkLosses,
  checkLeases,
  checkTurns,
  checkPlaces,
  checkTasks,
  checkProcesses,
  checkSessions,
  checkSandboxes,
  checkElsewhere,
  checkProbes,
  checkErased,
  checkRestores,
];

/** Looks for what crashes have left over. Changes nothing; `repair` of a finding does. */
export async function examine(parts: DoctorParts): Promise<Finding[]> {
  const damage = await checkFile(parts);
  try {
    const findings: Finding[] = [];
    const census = await parts.store.census();
    for (const check of CHECKS) findings.push(...(await check(parts, census)));
    return [...damage, ...findings];
  } catch (error) {
    // What cannot be read cannot be checked, and that is the first thing to mend.
    if (damage.length > 0 && isDamage(error)) return [...damage, ...(await checkServer(parts))];
    throw error;
  }
}
