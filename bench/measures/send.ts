import { spawnSync } from 'node:child_process';
import { cpSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleForNode } from '../../scripts/bundle.js';
import type { Finding, Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { median } from '../support/statistics.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const COMMANDS = {
  empty: ['-e', '0'],
  send: ['send', 'notes', 'The codeword is osprey.', '--agent', 'scripted'],
  show: ['show', 'notes'],
  list: ['list'],
  help: ['--help'],
} as const;

/** Whole commands of the published package, compared with an empty Node program. They alternate. */
const measure: Measure = async ({ quick }) => {
  await using home = new BenchHome();
  const program = await buildPackage(join(home.path, 'package'));
  const env = { ...process.env, THROUGHLINE_HOME: home.path, NODE_COMPILE_CACHE: `${home.path}/compile-cache` };
  const run = (name: keyof typeof COMMANDS) => {
    const args = name === 'empty' ? COMMANDS.empty : [program, ...COMMANDS[name]];
    const start = performance.now();
    const { status, stderr } = spawnSync(process.execPath, args, { env, cwd: home.path, encoding: 'utf8' });
    if (status !== 0) throw new Error(`${args.join(' ')}: ${stderr}`);
    return performance.now() - start;
  };
  const names = Object.keys(COMMANDS) as (keyof typeof COMMANDS)[];
  for (let i = 0; i < 3; i += 1) names.map(run); // the first run fills the caches
  const rounds = Array.from({ length: quick ? 3 : 25 }, () => new Map(names.map((name) => [name, run(name)])));
  const ms = (name: keyof typeof COMMANDS) => median(rounds.map((round) => round.get(name) ?? 0));
  const finding = (name: keyof typeof COMMANDS, what: string): Finding => ({
    name: `\`throughline ${name === 'help' ? '--help' : name}\` ÷ \`node -e 0\``,
    value: ms(name) / ms('empty'),
    unit: '×',
    target: name === 'send' ? { kind: 'aim', most: 4 } : null,
    note: `${ms(name).toFixed(0)} and ${ms('empty').toFixed(0)} ms${what}`,
  });
  return [
    finding('send', "; it opens the store, resumes the session in an agent's process (one more Node) and ends both"),
    finding('show', '; one conversation'),
    finding('list', '; one conversation'),
    finding('help', '; opens no data'),
  ];
};

/** The programs that `npm pack` would pack, without the sources. Returns the path of the command. */
async function buildPackage(folder: string): Promise<string> {
  for (const name of ['bin', 'package.json']) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  await bundleForNode(join(folder, 'dist'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return join(folder, 'bin/throughline.js');
}

export default measure;
