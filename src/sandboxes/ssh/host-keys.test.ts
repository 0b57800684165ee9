import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { algorithmsOf, fingerprint, keysIn, parseHostKey } from './host-keys.ts';

const KEY = 'AAAAC3NzaC1lZDI1NTE5AAAAIB3TtGdyJ4nEBkcFgbDoAEhUkBcNMn8dUwWzVFcYsPqd';
const hashed = (name: string) => {
  const salt = Buffer.from('a salt of twenty byt');
  return `|1|${salt.toString('base64')}|${createHmac('sha1', salt).update(name).digest('base64')}`;
};

test.each([
  ['the name', 'a.example', 'a.example', 22, 1],
  ['one of several names', 'b.example,a.example,10.0.0.1', 'A.example', 22, 1],
  ['a name with a port', '[a.example]:2222', 'a.example', 2222, 1],
  ['a pattern', '*.example', 'a.example', 22, 1],
  ['the hash of the name', hashed('a.example'), 'a.example', 22, 1],
  ['the hash of the name with a port', hashed('[a.example]:2222'), 'a.example', 2222, 1],
  ['another port', 'a.example', 'a.example', 2222, 0],
  ['another name', 'a.example', 'b.example', 22, 0],
  ['a name that only begins like it', 'a.example', 'a.example.org', 22, 0],
  ['a name that is excluded', '!a.example,*.example', 'a.example', 22, 0],
  ['the hash of another name', hashed('b.example'), 'a.example', 22, 0],
  ['a comment', '#a.example', '#a.example', 22, 0],
])('a line with %s', (_, hosts, host, port, count) => {
  const { known } = keysIn(`\n# keys\n${hosts} ssh-ed25519 ${KEY} somebody\n`, host, port);
  expect(known).toEqual(count === 0 ? [] : [{ type: 'ssh-ed25519', key: KEY }]);
});

test('a revoked key is recognised, and the key of a certificate authority is not used as a host key', () => {
  const text = `@revoked a.example ssh-ed25519 ${KEY}\n@cert-authority *.example ssh-ed25519 ${KEY}\n`;
  expect(keysIn(text, 'a.example', 22)).toEqual({ known: [], revoked: [{ type: 'ssh-ed25519', key: KEY }] });
});

test('a key is read from settings, and shown as OpenSSH does', () => {
  expect(parseHostKey(`ssh-ed25519 ${KEY} somebody`)).toEqual({ type: 'ssh-ed25519', key: KEY });
  expect(parseHostKey(`ssh-rsa ${KEY}`)).toBeNull();
  expect(parseHostKey('ssh-ed25519 AAAA')).toBeNull();
  expect(fingerprint(Buffer.from(KEY, 'base64'))).toMatch(/^SHA256:[A-Za-z0-9+/]{43}$/);
  expect(algorithmsOf('ssh-rsa')).toEqual(['rsa-sha2-512', 'rsa-sha2-256']);
  expect(algorithmsOf('ssh-ed25519')).toEqual(['ssh-ed25519']);
});
