import { noSuchPermission, noSuchTurn, ThroughlineError } from '../../core/errors.ts';

/** What stands in the path of a request. What cannot stand there names nothing that there is. */

const LONGEST = 512;

export function turnIn(id: string): { turn: string } {
  return { turn: checkSegment(id, noSuchTurn) };
}

export function permissionIn(id: string): { permission: string } {
  return { permission: checkSegment(id, noSuchPermission) };
}

export function checkSegment(text: string, missing: (text: string) => ThroughlineError): string {
  const fits = text !== '' && text !== '.' && text !== '..' && text.length <= LONGEST && text.isWellFormed();
  if (!fits) throw missing(text);
  return text;
}

/** A server has a working directory of its own: what is relative would mean another place there. */
export function checkDirectory(cwd: string | undefined): void {
  if (cwd === undefined || isWhole(cwd)) return;
  throw new ThroughlineError('invalid', `The working directory "${cwd}" is not absolute.`, {
    hint: 'A server needs the whole path.',
  });
}

export function isWhole(path: string): boolean {
  return /^(\/|[A-Za-z]:[\\/])/.test(path);
}
