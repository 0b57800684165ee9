import { readdirSync, readFileSync } from 'node:fs';
import { word } from '../remote/machine.ts';

/* What a program in a sandbox inherits from us: variables, but no open files. */

/** Shell commands that set the variables. Throws for variables that a shell cannot have. */
export function exported(env: Readonly<Record<string, string>>): string {
  const lines = Object.entries(env).map(([name, value]) => {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
      throw new Error(`${JSON.stringify(name)} is not the name of a variable`);
    if (value.includes('\0')) throw new Error(`the variable ${name} has a zero byte`);
    return `export ${name}=${word(value)}\n`;
  });
  // A shell removes line breaks at the end of a substitution, and a value may end with some.
  return `${lines.join('')}:`;
}

/**
 * Entries of `stdio` from the number `first` on: `nothing` in the place of each file that our parent left open for programs that we
 * start. An open folder would lead out of the sandbox. ('ignore' leaves a number above 2 as it is.)
 */
export function coverInherited(nothing: number, first: number): (number | 'ignore')[] {
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
    return false; // closed meanwhile, such as the one that listed them
  }
}
