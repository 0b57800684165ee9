import type { PermissionMode } from '../../core/turn.ts';
import type { Output } from './output.ts';

/** Whether a person is there to be asked. With `--json` a program reads. */
export function atTerminal(output: Output): boolean {
  return Boolean(process.stdin.isTTY) && !output.json;
}

/** What a question meets when the caller has not said: somebody who can answer, or nobody. */
export function defaultPermissions(output: Output): PermissionMode {
  return atTerminal(output) ? 'ask' : 'deny';
}
