import { type Finding, isReached } from './finding.ts';

/** The machine, as far as it explains the times. */
export interface Machine {
  readonly cores: number;
  readonly system: string;
  readonly node: string;
  /** The load average while it was measured, lowest and highest. */
  readonly load: readonly [number, number];
}

/** For the terminal: one line for each finding, and its note below. */
export function asText(findings: readonly Finding[], machine: Machine): string {
  const rows = findings.map((finding) => ({ cells: cells(finding), note: finding.note }));
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map(({ cells }) => cells[column]?.length ?? 0)));
  const lines = rows.flatMap(({ cells, note }) => [
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
    `    ${note}`,
  ]);
  return ['', ...lines, '', described(machine)].join('\n');
}

/** RESULTS.md. */
export function resultsPage(findings: readonly Finding[], machine: Machine): string {
  const rows = findings.map((finding) => `| ${[...cells(finding), finding.note].join(' | ')} |`);
  return [
    '# Last measured',
    '',
    'Written by `npm run bench -- --save`. Times differ between machines; within a row, what is compared was measured in alternation.',
    '',
    '| what | reached | target | verdict | what is in it |',
    '|---|---|---|---|---|',
    ...rows,
    '',
    described(machine),
    '',
  ].join('\n');
}

function cells(finding: Finding): string[] {
  const { name, value, unit, target } = finding;
  if (target === null) return [name, amount(value, unit), '', ''];
  const bound = 'most' in target ? `≤ ${amount(target.most, unit)}` : `≥ ${amount(target.least, unit)}`;
  return [name, amount(value, unit), `${target.kind} ${bound}`, isReached(finding) ? 'reached' : 'MISSED'];
}

function amount(value: number, unit: string): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  const whole = Number.isInteger(value) ? 0 : digits;
  const number = value.toLocaleString('en', { minimumFractionDigits: whole, maximumFractionDigits: whole });
  return unit === '' ? number : unit.startsWith('/') ? `${number}${unit}` : `${number} ${unit}`;
}

function described({ cores, system, node, load }: Machine): string {
  const [low, high] = load.map((value) => value.toFixed(1));
  return `Machine: ${cores} cores, ${system}, Node ${node}; load average ${low} to ${high} while measuring.`;
}
