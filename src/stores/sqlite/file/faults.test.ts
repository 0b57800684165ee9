import { expect, test } from 'vitest';
import { isBusy, isConstraint, storageFault } from './faults.ts';

function sqliteError(errcode: number): Error {
  return Object.assign(new Error('as SQLite says it'), { code: 'ERR_SQLITE_ERROR', errcode });
}

test.each([
  ['BUSY', 5, 'storage_busy'],
  ['BUSY_SNAPSHOT', 517, 'storage_busy'],
  ['LOCKED', 6, 'storage_busy'],
  ['READONLY', 8, 'storage_readonly'],
  ['READONLY_DBMOVED', 1032, 'storage_readonly'],
  ['CANTOPEN', 14, 'storage_readonly'],
  ['FULL', 13, 'storage_full'],
  ['IOERR_WRITE', 778, 'storage_full'],
  ['IOERR_SHMSIZE', 4874, 'storage_full'],
  ['IOERR_READ', 266, 'storage_damaged'],
  ['IOERR', 10, 'storage_damaged'],
  ['CORRUPT', 11, 'storage_damaged'],
  ['NOTADB', 26, 'storage_damaged'],
])('%s (%i) is %s, with what to do and its cause', (_name, errcode, code) => {
  const error = sqliteError(errcode);
  expect(storageFault(error)).toMatchObject({ code, cause: error, hint: expect.stringMatching(/\w/) });
  expect(isBusy(error)).toBe(code === 'storage_busy');
});

test('a stored value that is not JSON is damage', () => {
  const quoting = storageFault(new SyntaxError('Unexpected token S, "Secret"... is not valid JSON'));
  expect([quoting?.code, quoting?.cause]).toEqual(['storage_damaged', undefined]);
});

test('errors that do not come from the storage are not changed', () => {
  expect(storageFault(sqliteError(1))).toBeNull();
  expect(storageFault(sqliteError(19))).toBeNull();
  expect(storageFault(new TypeError('bug'))).toBeNull();
  expect(isConstraint(sqliteError(2067))).toBe(true);
  expect(isConstraint(sqliteError(5))).toBe(false);
});
