import { userInfo } from 'node:os';
import { isAbsolute } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { createHome, dataHome } from './data-home.ts';

vi.mock('node:os', { spy: true });
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

test('the default data home is absolute, also when HOME is empty', () => {
  vi.stubEnv('THROUGHLINE_HOME', '');
  vi.stubEnv('XDG_DATA_HOME', 'not/absolute');
  for (const home of ['', '/home/somebody']) {
    vi.stubEnv('HOME', home);
    expect(isAbsolute(dataHome()), home).toBe(true);
  }
  expect(dataHome()).toBe('/home/somebody/.local/share/throughline');
});

test('a user without a home directory gets an error that says what to do', () => {
  vi.stubEnv('THROUGHLINE_HOME', '');
  vi.stubEnv('XDG_DATA_HOME', '');
  vi.stubEnv('HOME', '');
  vi.mocked(userInfo).mockImplementationOnce(() => {
    throw new Error('uv_os_get_passwd returned ENOENT (no such file or directory)');
  });
  expect(dataHome).toThrow(expect.objectContaining({ code: 'refused', hint: expect.stringContaining('--home') }));
});

test('Windows is refused with a hint, before anything is created', () => {
  vi.spyOn(process, 'platform', 'get').mockReturnValue('win32');
  const refused = { code: 'refused', hint: expect.stringContaining('WSL 2') };
  expect(() => createHome('C:\\data')).toThrow(expect.objectContaining(refused));
});
