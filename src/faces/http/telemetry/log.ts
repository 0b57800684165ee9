import pino from 'pino';
import type { LogLevel } from '../../../ports/server.ts';
import { withoutSecrets } from '../access/secrets.ts';

export type Log = Pick<pino.Logger, 'debug' | 'info' | 'warn' | 'error'>;

/**
 * Logs one JSON line per event. Bodies, headers and raw addresses are never logged. Secrets that get into a message anyway are
 * replaced in the finished line.
 */
export function createLog(level: LogLevel, secrets: readonly string[], write: (line: string) => void): Log {
  const options = { level, base: null, redact: ['*.authorization', '*.cookie', '*.token', '*.key'] };
  return pino(options, { write: (line) => write(withoutSecrets(line, secrets)) });
}
