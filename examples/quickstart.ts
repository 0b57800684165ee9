// A conversation that continues after the program and the agent's session have ended.
// Run it again with the home that it prints: node examples/quickstart.ts HOME
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'throughline';

const home = process.argv[2] ?? mkdtempSync(join(tmpdir(), 'throughline-'));
console.log('home:', home);

// Without `home`, the data is in $THROUGHLINE_HOME or the XDG directory. Without `settings`, throughline.config.json is read.
await using tl = await open({ home, settings: { agents: { scripted: { adapter: 'scripted' } } } });
const chat = tl.conversation('quickstart', { agent: 'scripted' });

// Events as they happen. All of them are stored, and can be read again from any number, in any process.
for await (const event of chat.send('The codeword is amber.')) {
  if (event.kind === 'turn.update') console.log('update:', JSON.stringify(event.payload.update));
  if (event.kind === 'turn.ended') console.log('ended:', event.payload.outcome);
}

// Or just the answer, with the receipt: how the session got its context.
const { reply, receipt } = await chat.ask('Which codewords have you seen?');
console.log('reply:', reply);
console.log(`receipt: ${receipt.rung}, ${receipt.carried} turns carried, ${receipt.dropped} dropped, ${receipt.proof}`);

const { contexts, sessions } = await chat.summary();
console.log(`summary: ${contexts} turns in ${sessions} session${sessions === 1 ? '' : 's'}`);
