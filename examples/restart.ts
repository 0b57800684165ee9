// A conversation over two processes, with an agent that forgets everything when its own process ends.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open, type Settings } from 'throughline';

const settings: Settings = { agents: { forgetful: { adapter: 'scripted', options: { memory: 'process' } } } };
const [, , home, prompt] = process.argv;

if (home !== undefined && prompt !== undefined) {
  await using tl = await open({ home, settings });
  const { reply, receipt } = await tl.conversation('restart').ask(prompt);
  console.log(`process ${process.pid} (${receipt.rung}): ${reply}`);
} else {
  const own = mkdtempSync(join(tmpdir(), 'throughline-restart-'));
  try {
    for (const said of ['The codeword is amber.', 'The codeword is birch.', 'Which codewords have you seen?']) {
      spawnSync(process.execPath, [fileURLToPath(import.meta.url), own, said], { stdio: 'inherit' });
    }
  } finally {
    rmSync(own, { recursive: true });
  }
}
