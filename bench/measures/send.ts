import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { median } from '../support/statistics.ts';

const PROGRAM = fileURLToPath(new URL('../../bin/throughline.js', import.meta.url));

/** The whole command, from nothing to the answer, beside what it costs to start Node at all. In alternation. */
const measure: Measure = async ({ quick }) => {
  await using home = new BenchHome();
  const env = { ...process.env, THROUGHLINE_HOME: home.path, NODE_COMPILE_CACHE: `${home.path}/compile-cache` };
  const run = (args: readonly string[]) => {
    const start = performance.now();
    const { status, stderr } = spawnSync(process.execPath, args, { env, cwd: home.path, encoding: 'utf8' });
    if (status !== 0) throw new Error(`${args.join(' ')}: ${stderr}`);
    return performance.now() - start;
  };
  const send = () => run([PROGRAM, 'send', 'notes', 'The codeword is osprey.', '--agent', 'scripted']);
  const empty = () => run(['-e', '0']);
  for (let i = 0; i < 3; i += 1) [send(), empty()]; // the compile cache is filled by a first run, and used from the next on
  const times: { send: number[]; empty: number[] } = { send: [], empty: [] };
  for (let i = 0; i < (quick ? 3 : 25); i += 1) {
    times.empty.push(empty());
    times.send.push(send());
  }
  const [whole, start] = [median(times.send), median(times.empty)];
  return [
    {
      name: '`throughline send` ÷ `node -e 0`',
      value: whole / start,
      unit: '×',
      target: { kind: 'aim', most: 4 },
      note: `${whole.toFixed(0)} and ${start.toFixed(0)} ms; it opens the store, resumes the session in an agent's process (one more Node) and ends both`,
    },
  ];
};

export default measure;
