import { type ErrorCode, ThroughlineError } from '../../core/errors.ts';
import { SDK } from './find-package.ts';

const AGAIN = 'Then run "throughline agents install claude" again.';

/** What npm says when it fails, and what to do about it. */
const SAYINGS: readonly (readonly [words: RegExp, code: ErrorCode, message: string, hint: string])[] = [
  [
    /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT)\b|network/i,
    'agent_unavailable',
    'npm could not reach its registry.',
    `Check the network, the proxy and "npm config get registry". ${AGAIN}`,
  ],
  [
    /\b(?:ETARGET|E404)\b/,
    'not_found',
    `npm has no such version of ${SDK}.`,
    `See "npm view ${SDK} versions", or leave out --version.`,
  ],
  [/\b(?:E401|E403|ENEEDAUTH)\b/, 'agent_unavailable', "npm's registry refused.", 'Check its login: "npm whoami".'],
  [/\b(?:ENOSPC|EDQUOT)\b/, 'storage_full', 'No room left on the disk.', `About 500 MB are needed. ${AGAIN}`],
  [
    /\b(?:EACCES|EPERM|EROFS)\b/,
    'storage_readonly',
    'npm may not write there.',
    'Check the permissions of the data home.',
  ],
];

export function npmFailure(cause: Error | string, version: string): ThroughlineError {
  if (cause instanceof Error) {
    if (cause.name === 'AbortError') return new ThroughlineError('cancelled', 'The install was stopped.', { cause });
    const hint = 'Install Node together with npm, or put the program "claude" on PATH.';
    return new ThroughlineError('agent_unavailable', 'npm was not found.', { hint, cause });
  }
  const said = SAYINGS.find(([words]) => words.test(cause));
  if (said === undefined) {
    const message = `npm could not install ${SDK} ${version}: ${firstErrors(cause) || 'it did not say why'}`;
    return new ThroughlineError('agent_unavailable', message);
  }
  const [, code, message, hint] = said;
  return new ThroughlineError(code, `${message} (${firstErrors(cause)})`, { hint });
}

function firstErrors(complaint: string): string {
  const lines = complaint.split('\n').map((line) => line.replace(/^npm (?:error|ERR!)\s*/i, '').trim());
  return lines
    .filter((line) => line !== '' && !/^(?:npm warn|A complete log|code )/i.test(line))
    .slice(0, 2)
    .join(' ');
}
