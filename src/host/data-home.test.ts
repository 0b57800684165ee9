import { isAbsolute } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { dataHome } from './data-home.ts';

afterEach(() => void vi.unstubAllEnvs());

test('is the same wherever one is, also when HOME is empty', () => {
  vi.stubEnv('THROUGHLINE_HOME', '');
  vi.stubEnv('XDG_DATA_HOME', 'not/absolute');
  for (const home of ['', '/home/somebody']) {
    vi.stubEnv('HOME', home);
    expect(isAbsolute(dataHome()), home).toBe(true);
  }
  expect(dataHome()).toBe('/home/somebody/.local/share/throughline');
});
