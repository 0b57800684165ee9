import { ThroughlineError } from '../../core/errors.ts';

/** For what is about this machine: naming a server for it must not be ignored. */
export function notThroughServer(command: string): ThroughlineError {
  return new ThroughlineError('invalid', `"${command}" works on the data home itself, and not through a server.`, {
    hint: 'Leave --server out, and run it on the machine that has the home.',
  });
}
