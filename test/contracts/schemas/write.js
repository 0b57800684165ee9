// `node test/contracts/schemas/write.js` writes a database with the current schema into this folder. Run it before you add a migration.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';

const PROGRAM = fileURLToPath(new URL('../../../bin/throughline.js', import.meta.url));
const home = mkdtempSync(join(tmpdir(), 'throughline-schema-'));
const env = { PATH: process.env.PATH, HOME: home, THROUGHLINE_HOME: home };
const agents = { ant: { adapter: 'scripted' }, bee: { adapter: 'scripted' } };
writeFileSync(join(home, 'throughline.config.json'), JSON.stringify({ agents, defaultAgent: 'ant' }));

/** @param {string[]} args */
const run = (...args) => {
  const { stderr, status } = spawnSync(process.execPath, [PROGRAM, ...args], { env, cwd: home, encoding: 'utf8' });
  console.log(status, ...args, status === 0 ? '' : stderr);
};
run('send', 'notes', 'The codeword is amber-heron', '--request-id', 'first');
run('send', 'notes', '/tool write out.txt\nThe codeword is osprey');
run('send', 'notes', `A long prompt: ${'0123456789 '.repeat(600)}`);
run('send', 'notes', 'Which codewords have you seen?', '--agent', 'bee');
run('send', 'notes', '/fail agent_failed');
run('send', 'notes', '/ask May I?\n/tool write out.txt');
run('fork', 'notes', '--turn', '2', '--key', 'branch');
run('send', 'branch', 'The codeword is plover');
run('send', 'spoken', 'The codeword is wren', '--as', 'ann');
run('send', 'gone', 'The codeword is secret-finch');
run('erase', 'gone', '--yes');
run('keys', 'create', 'the dashboard', '--scopes', 'read');
run('task', 'run', 'Write the file', '--gate', 'true', '--name', 'one', '--agent', 'ant');

const db = new DatabaseSync(join(home, 'throughline.db'), { timeout: 5_000 });
const killed = spawn(process.execPath, [PROGRAM, 'send', 'killed', '/say half\n/hang'], { env, cwd: home });
const UPDATES = `SELECT count(*) AS n FROM events WHERE kind = 'turn.update'
  AND conv = (SELECT no FROM conversations WHERE key = 'killed')`;
while (db.prepare(UPDATES).get()?.n === 0) await delay(50);
killed.kill('SIGKILL');
await new Promise((resolve) => killed.on('close', resolve));

const copy = join(home, 'copy.db');
db.exec(`VACUUM INTO '${copy}'`);
const schema = String(db.prepare('PRAGMA user_version').get()?.user_version).padStart(2, '0');
db.close();
const file = fileURLToPath(new URL(`schema-${schema}.db.br`, import.meta.url));
writeFileSync(file, brotliCompressSync(readFileSync(copy)));
console.log(file);
run('doctor', '--fix'); // ends the agent of the command that was killed
rmSync(home, { recursive: true, force: true });
