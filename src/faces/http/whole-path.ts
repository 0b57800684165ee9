import { isAbsolute } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';

/** The working directory of a server is nobody's who asks: what is relative to it would be another place than they mean. */
export function checkWholePath(cwd: string, place = ''): void {
  if (isAbsolute(cwd)) return;
  throw new ThroughlineError('invalid', `${place}The working directory ${JSON.stringify(cwd)} is not absolute.`, {
    hint: 'A server needs the whole path.',
  });
}
