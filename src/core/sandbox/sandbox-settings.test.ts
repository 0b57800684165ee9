import { expect, test } from 'vitest';
import { parseSettings } from '../input/settings.ts';
import { bubblewrapSettings } from './sandbox-settings.ts';

const read = (sandbox: object) => parseSettings({ sandbox }).sandbox;

test('bubblewrap has its defaults: the network of the model, the variables of Claude', () => {
  const settings = read({ kind: 'bubblewrap', key: {}, binds: [{ path: 'tools' }] });
  expect(bubblewrapSettings(settings, (path) => `/base/${path}`)).toEqual({
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
  expect(bubblewrapSettings(read({ root: 'x' }), (path) => path)).toBeNull();
});

test.each([
  [{ network: 'none' }, /"sandbox\.network" needs "sandbox\.kind": "bubblewrap"/],
  [{ kind: 'directory', limits: {} }, /"sandbox\.limits" needs/],
  [{ kind: 'bubblewrap' }, /reaches nothing without "allow" or "key"/],
  [{ kind: 'bubblewrap', network: 'all', allow: ['a.example'] }, /"sandbox\.allow" needs "sandbox\.network": "model"/],
  [{ kind: 'bubblewrap', network: 'none', key: {} }, /"sandbox\.key" needs/],
  [{ kind: 'bubblewrap', allow: ['http://a.example'] }, /HOST:PORT/],
  [{ kind: 'bubblewrap', allow: ['a.example'], limits: { processes: 1 } }, /processes/],
  [{ kind: 'bubblewrap', key: { url: 'ftp://x' } }, /http:\/\/ or https:\/\//],
  [{ kind: 'bubblewrap', network: 'none', binds: [{}] }, /path/],
  [{ kind: 'podman' }, /directory, bubblewrap/],
])('%j is refused', (sandbox, message) => {
  expect(() => bubblewrapSettings(read(sandbox), (path) => path)).toThrow(
    expect.objectContaining({ code: 'invalid', message: expect.stringMatching(message) }),
  );
});
