import { expect, test } from 'vitest';
import {
  clientProcess,
  holderAtServer,
  holderLabel,
  identityOfLocal,
  localProcess,
  type ProcessIdentity,
  storedProcess,
} from './process.ts';

const IDENTITY: ProcessIdentity = { pid: 7, started: '12', boot: 'b', namespace: 'n', mark: 'm' };

test('a stored process of this machine is recognised again', () => {
  const stored = JSON.parse(JSON.stringify(localProcess(IDENTITY)));
  expect(stored).toMatchObject({ kind: 'local', label: 'process 7' });
  expect(identityOfLocal(storedProcess(stored) ?? stored)).toEqual(IDENTITY);
});

test('a process that an older version stored is a process of this machine', () => {
  const stored = storedProcess(JSON.parse(JSON.stringify(IDENTITY)));
  expect(stored).toEqual(localProcess(IDENTITY));
  expect(storedProcess(null)).toBeNull();
});

test.each([
  { kind: 'container', id: JSON.stringify(IDENTITY), label: '' },
  { kind: 'local', id: 'no JSON', label: '' },
  { kind: 'local', id: '{"pid":7}', label: '' },
  { kind: 'local', id: 'null', label: '' },
])('%j is an unknown process', (process) => {
  expect(identityOfLocal(process)).toBeNull();
});

test.each<[string, ProcessIdentity, string]>([
  ['this process', IDENTITY, 'this process'],
  ['a later process with the same pid', { ...IDENTITY, started: '13' }, 'another process'],
  ['a process of another boot', { ...IDENTITY, boot: 'c' }, 'another process'],
  ['a process of another container', { ...IDENTITY, namespace: 'm' }, 'another process'],
  ['another process', { ...IDENTITY, pid: 8 }, 'another process'],
  ['a program that uses a server', clientProcess('osprey-1'), 'client osprey-1'],
])('the holder of a lease is shown without its pid: %s', (_, holder, label) => {
  expect(holderLabel(holder, IDENTITY)).toBe(label);
  expect(holderAtServer(label)).toBe(label === 'this process' ? 'this server' : label);
});
