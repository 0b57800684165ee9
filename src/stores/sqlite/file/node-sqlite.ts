// The one file of the store that knows Node's SQLite module: a newer Node renames its class.
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';

export type Value = SQLInputValue;
export type Statement = StatementSync;
export type Connection = DatabaseSync;

/** `timeout`: how long SQLite waits for a lock. It blocks the whole process meanwhile, so keep it tiny. */
export function connect(file: string, timeout: number): Connection {
  return new DatabaseSync(file, {
    timeout,
    enableForeignKeyConstraints: true,
    enableDoubleQuotedStringLiterals: false,
    allowExtension: false,
  });
}
