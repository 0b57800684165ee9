// Finds functions that do not fit on a screen.
import { functionsIn } from '../../scripts/trace-functions.js';

/** The most lines that a function may have, from its head to its closing brace, with the functions inside it. */
export const MOST_LINES = 60;

export function longFunctions(path: string, source: string): string[] {
  return functionsIn(path, source)
    .filter(({ lines }) => lines > MOST_LINES)
    .map(({ name, lines }) => `${name} has ${lines} lines`);
}
