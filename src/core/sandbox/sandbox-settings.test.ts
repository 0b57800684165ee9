import { expect, test } from 'vitest';
import { parseSettings } from '../input/settings.ts';
import { isolationSettings, sshSettings } from './sandbox-settings.ts';

const read = (sandbox: object) => parseSettings({ sandbox }).sandbox;

test('bubblewrap has its defaults: the network of the model, the variables of Claude', () => {
  const settings = read({ kind: 'bubblewrap', key: {}, binds: [{ path: 'tools' }] });
  expect(isolationSettings(settings, (path) => `/base/${path}`)?.settings).toEqual({
    network: 'model',
    allow: [],
    key: {
      variable: 'ANTHROPIC_API_KEY',
      header: 'x-api-key',
      urlVariable: 'ANTHROPIC_BASE_URL',
      url: 'https://api.anthropic.com',
    },
    limits: {},
    binds: [{ path: '/base/tools' }],
  });
  expect(isolationSettings(read({ root: 'x' }), (path) => path)).toBeNull();
});

test('ssh has its defaults, and the same place on every server with the same settings', () => {
  const settings = read({ kind: 'ssh', host: 'a.example', user: 'ann', identityFile: 'keys/ann' });
  expect(sshSettings(settings, (path) => `/base/${path}`)).toEqual({
    ...{ host: 'a.example', port: 22, user: 'ann', root: '.throughline/sandboxes' },
    ...{ hostKey: null, knownHosts: null, identityFile: '/base/keys/ann' },
    place: 'ssh://ann@a.example:22/.throughline/sandboxes',
  });
  expect(sshSettings(read({}), (path) => path)).toBeNull();
});

test('a container is run by podman, from an image or from a folder', () => {
  const of = (given: object) =>
    isolationSettings(read({ kind: 'container', network: 'none', ...given }), (path) => `/base/${path}`);
  expect(of({ image: 'localhost/agent:1' })).toMatchObject({
    by: 'container',
    settings: { engine: 'podman', network: 'none', root: { image: 'localhost/agent:1' } },
  });
  expect(of({ rootfs: 'system' })?.settings).toMatchObject({ root: { folder: '/base/system' } });
});

test.each([
  [{ network: 'none' }, /"sandbox\.network" needs "sandbox\.kind": "bubblewrap" or "container"/],
  [{ kind: 'directory', limits: {} }, /"sandbox\.limits" needs/],
  [{ kind: 'bubblewrap' }, /reaches nothing without "allow" or "key"/],
  [{ kind: 'bubblewrap', network: 'all', allow: ['a.example'] }, /"sandbox\.allow" needs "sandbox\.network": "model"/],
  [{ kind: 'bubblewrap', network: 'none', key: {} }, /"sandbox\.key" needs/],
  [{ kind: 'bubblewrap', allow: ['http://a.example'] }, /HOST:PORT/],
  [{ kind: 'bubblewrap', allow: ['a.example'], limits: { processes: 1 } }, /processes/],
  [{ kind: 'bubblewrap', key: { url: 'ftp://x' } }, /http:\/\/ or https:\/\//],
  [{ kind: 'bubblewrap', network: 'none', binds: [{}] }, /path/],
  [{ kind: 'podman' }, /directory, bubblewrap/],
  [{ kind: 'bubblewrap', image: 'a' }, /"sandbox\.image" needs "sandbox\.kind": "container"/],
  [{ kind: 'container', network: 'none' }, /needs either "sandbox.image" or "sandbox.rootfs"/],
  [{ kind: 'container', network: 'none', image: 'a', rootfs: 'b' }, /needs either "sandbox.image" or "sandbox.rootfs"/],
  [
    { kind: 'container', network: 'none', engine: 'docker', rootfs: 'b' },
    /"sandbox\.rootfs" needs "sandbox\.engine": "podman"/,
  ],
  [{ kind: 'container', network: 'none', image: '--privileged' }, /name of an image/],
  [{ kind: 'container', image: 'a' }, /reaches nothing/],
  [{ kind: 'ssh', host: 'a.example' }, /needs "sandbox.host" and "sandbox.user"/],
  [{ kind: 'ssh', host: 'a.example', user: 'ann', worktree: true }, /"sandbox\.worktree" needs files on this/],
  [
    { kind: 'ssh', host: 'a.example', user: 'ann', directories: ['/srv'] },
    /"sandbox\.directories" needs files on this/,
  ],
  [{ kind: 'ssh', host: 'a.example', user: 'ann', port: 0 }, /port/],
  [{ kind: 'ssh', host: 'a.example', user: 'ann', hostKey: 'AAAA' }, /ssh-ed25519 AAAA/],
  [
    { kind: 'ssh', host: 'a.example', user: 'ann', limits: {} },
    /"sandbox\.limits" needs "sandbox\.kind": "bubblewrap"/,
  ],
  [{ place: 'team' }, /"sandbox\.place" needs "sandbox\.root"/],
  [{ kind: 'ssh', host: 'a', user: 'b', place: 'team' }, /"sandbox\.place" names directories of servers/],
  [{ host: 'a.example' }, /"sandbox\.host" needs "sandbox\.kind": "ssh"/],
  [{ machine: {} }, /"sandbox\.machine" needs "sandbox\.kind": "vercel" or "e2b"/],
  [{ kind: 'e2b', root: 'x' }, /"sandbox\.root" cannot be used with rented machines/],
  [{ kind: 'vercel', network: 'none' }, /"sandbox\.network" needs/],
])('%j is refused', (sandbox, message) => {
  expect(() => isolationSettings(read(sandbox), (path) => path)).toThrow(
    expect.objectContaining({ code: 'invalid', message: expect.stringMatching(message) }),
  );
});
