import pino from 'pino';
import { harmlessJson } from '../../../core/input/visible.ts';
import type { LogLevel } from '../../../ports/server.ts';
import { withoutSecrets } from '../access/secrets.ts';

export type Log = Pick<pino.Logger, 'debug' | 'info' | 'warn' | 'error'>;

/**
 * Logs one JSON line per event. Bodies, headers and raw addresses are never logged. Secrets that get into a message anyway are
 * replaced in the finished line. The log may be read at a terminal, so characters that act on one are escaped.
 */
export function createLog(level: LogLevel, secrets: readonly string[], write: (line: string) => void): Log {
  const options = { level, base: null, redact: ['*.authorization', '*.cookie', '*.token', '*.key'] };
  return pino(options, { write: (line) => write(harmlessJson(withoutSecrets(line, secrets))) });
}
