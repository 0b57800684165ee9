import { readdirSync, readFileSync } from 'node:fs';

/* What is passed on to a program in a sandbox, and what is not. */

/** Sets the variables in a shell. Throws for those that no shell can have. */
export function exported(env: Readonly<Record<string, string>>): string {
  const lines = Object.entries(env).map(([name, value]) => {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw new Error(`${JSON.stringify(name)} is no name of a variable`);
    if (value.includes('\0')) throw new Error(`the variable ${name} has a zero byte`);
    return `export ${name}='${value.replaceAll("'", "'\\''")}'\n`;
  });
  // A substitution in a shell ends before the last line breaks: they may be a part of a value.
  return `${lines.join('')}:`;
}

/**
 * Files that whoever started us left open for programs that we start. An open folder would lead out of the sandbox, so these
 * numbers are something else there. (For numbers above 2, 'ignore' leaves them as they are.)
 */
export function covered(nothing: number, first: number): (number | 'ignore')[] {
  const numbers = readdirSync('/proc/self/fd').map(Number);
  const inherited = new Set(numbers.filter((number) => number >= first && isInherited(number)));
  const length = Math.max(0, Math.max(0, ...inherited) - first + 1);
  return Array.from({ length }, (_, at) => (inherited.has(first + at) ? nothing : 'ignore'));
}

const CLOSE_ON_EXEC = 0o2000000;

function isInherited(number: number): boolean {
  try {
    const [, flags = ''] = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${number}`, 'latin1')) ?? [];
    return (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    return false; // closed meanwhile, as the one that listed them
  }
}
