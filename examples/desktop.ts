// A desktop app runs Throughline in a second process: on a free port, with a line when it is ready. It ends with the app, even after a crash.
// node examples/desktop.ts HOME
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { open } from 'throughline';

/** Resolves when the server is ready. */
async function startServer(home: string): Promise<{ url: string; link: string; pid: number }> {
  const program = fileURLToPath(new URL('bin/throughline.js', import.meta.resolve('throughline/package.json')));
  const flags = ['serve', '--home', home, '--port', '0', '--json', '--end-with-parent', '--log-level', 'warn'];
  // The system closes this pipe when the app ends, even by a crash or a kill. Then the server stops.
  const server = spawn(process.execPath, [program, ...flags], { stdio: ['pipe', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: server.stdout })) return JSON.parse(line);
  throw new Error('The server did not start; its stderr says why.');
}

const [home = ''] = process.argv.slice(2);
const { url, link, pid } = await startServer(home);
console.log(`server ${pid}`);
console.log(`window ${link}`); // opened in the app's own window, it signs that window in; it works once

const tl = await open({ server: url, home }); // the token is read from the data home
const { reply } = await tl.conversation('window-1', { agent: 'scripted' }).ask('The codeword is amber.');
console.log(reply);
process.stdin.resume(); // until the app is closed
