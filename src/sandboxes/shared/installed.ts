import { ThroughlineError } from '../../core/errors.ts';

/** Loads an optional package. Throws `refused` when it is not installed. */
export async function installed<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw cause;
    throw new ThroughlineError('refused', `Sandboxes of this kind need the package ${name}, which is not installed.`, {
      hint: `Run "npm install ${name}" where throughline is installed.`,
      cause,
    });
  }
}
