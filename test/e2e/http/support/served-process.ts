import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CliHome, Running, StartOptions } from '../../cli/process.ts';
import { Caller } from './caller.ts';

export interface ServedProcess {
  readonly running: Running;
  readonly url: string;
  readonly link: string;
  readonly socket: string;
  readonly pid: number;
  readonly token: string;
  readonly caller: Caller;
}

/** Starts a server with the real executable. `more`: flags and options. Resolves when it has printed its address. */
export async function serveProcess(home: CliHome, ...more: (string | StartOptions)[]): Promise<ServedProcess> {
  const flags = more.filter((one) => typeof one === 'string');
  const options = more.find((one) => typeof one === 'object') ?? {};
  const running = home.start(['serve', '--json', '--port', '0', ...flags], options);
  const [line = ''] = await running.until('stdout', /^\{"kind":"serving".*\}$/m);
  const { url, link, socket, pid } = JSON.parse(line);
  const token = readFileSync(join(home.path, 'home', 'server', 'token'), 'utf8').trim();
  return { running, url, link, socket, pid, token, caller: new Caller(url, { authorization: `Bearer ${token}` }) };
}
