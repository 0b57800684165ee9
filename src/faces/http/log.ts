import pino from 'pino';
import { withoutSecrets } from './secrets.ts';

export type Log = Pick<pino.Logger, 'debug' | 'info' | 'warn' | 'error'>;

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * One JSON line for each thing that happened, with neither bodies, headers nor addresses as they came: what is not logged needs
 * no redaction. Secrets that get into a message all the same are taken out of the finished line.
 */
export function createLog(level: LogLevel, secrets: readonly string[], write: (line: string) => void): Log {
  const options = { level, base: null, redact: ['*.authorization', '*.cookie', '*.token', '*.key'] };
  return pino(options, { write: (line) => write(withoutSecrets(line, secrets)) });
}
