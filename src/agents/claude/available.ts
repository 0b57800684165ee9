import { onPath } from '../shared/programs.ts';
import { packageIn, packageOfOurs } from './find-package.ts';

/**
 * How a person who has set nothing can use Claude; null: it is not there. Only looks at files, so that whoever uses another
 * agent pays next to nothing for it: whether it runs, the first turn shows.
 */
export function availableClaude(installed: string, path: string): 'claude-sdk' | 'claude-cli' | null {
  const sdk = packageOfOurs() ?? packageIn(installed);
  if (sdk !== null && sdk.program !== null) return 'claude-sdk';
  if (onPath('claude', path) === null) return null;
  return sdk === null ? 'claude-cli' : 'claude-sdk';
}
