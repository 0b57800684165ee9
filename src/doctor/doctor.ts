import { isDamage } from '../core/errors.ts';
import type { Finding } from '../ports/doctor.ts';
import type { Check, DoctorParts } from './parts.ts';
import { checkElsewhere, checkErased, checkProbes, checkSandboxes } from './sandbox-checks.ts';
import { checkSessions } from './session-checks.ts';
import { checkFile, checkLosses, checkRestores, checkServer, checkWritable } from './storage-checks.ts';
import { checkLeases, checkPlaces, checkProcesses, checkTasks, checkTurns } from './work-checks.ts';

/**
 * A new check is one function in the file of its subject, and one entry here. This is also the order of repairs: first a dead holder is
 * removed, then what it held is free.
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

/** Runs all checks. Changes nothing; `repair` of a finding does. */
export async function examine(parts: DoctorParts): Promise<Finding[]> {
  const damage = await checkFile(parts);
  try {
    const findings: Finding[] = [];
    const census = await parts.store.census();
    for (const check of CHECKS) findings.push(...(await check(parts, census)));
    return [...damage, ...findings];
  } catch (error) {
    // Damaged data cannot be checked further: its repair comes first.
    if (damage.length > 0 && isDamage(error)) return [...damage, ...(await checkServer(parts))];
    throw error;
  }
}
