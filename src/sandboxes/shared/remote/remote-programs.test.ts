import { expect, test } from 'vitest';
import { formatMark } from '../../../core/process.ts';
import { RemotePrograms } from './remote-programs.ts';

test('of the processes left by a dead starter, only the program is found, and not its tools', async () => {
  const from = (id: string, pid: number) =>
    formatMark(id, { place: 'here', process: { pid, started: '1', boot: 'b', namespace: 'n' } });
  // As the shell lists them: 1003 comes before 998.
  const lines = [`1003 700 b n ${from('1', 9)}`, `998 600 b n ${from('1', 9)}`, `999 650 b n ${from('2', 10)}`];
  const machine = {
    name: 'there',
    silenceSeconds: 1,
    run: async () => ({ code: 0, stdout: Buffer.from(lines.join('\n')), stderr: '' }),
    start: () => expect.unreachable(),
  };
  const processes = {
    newMark: () => expect.unreachable(),
    status: ({ pid }: { pid: number }) => (pid === 9 ? 'dead' : 'alive') as 'dead' | 'alive',
  };
  const programs = new RemotePrograms({ machine, kind: 'ssh', place: 'here', processes });
  expect((await programs.orphans()).map(({ label }) => label)).toEqual(['process 998 on there']);
});
