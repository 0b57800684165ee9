// Runs one measure in this process, and prints its findings as JSON in the last line of its output.
import type { Measure } from './finding.ts';

const [name = '', mode] = process.argv.slice(2);
const { default: measure } = (await import(`./measures/${name}.ts`)) as { default: Measure };
const findings = await measure({ quick: mode === 'quick' });
for (const { name: what, value } of findings)
  if (!Number.isFinite(value)) throw new Error(`"${what}" measured nothing.`);
process.stdout.write(`${JSON.stringify(findings)}\n`);
